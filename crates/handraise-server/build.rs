//! Rebuilds when the page was built anew.

fn main() {
    println!("cargo:rerun-if-changed=page");
}
