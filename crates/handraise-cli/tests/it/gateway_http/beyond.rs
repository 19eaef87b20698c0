//! Serving beyond loopback: TLS or a proxy that speaks it, and callers (S10).

use std::{
    io::Write as _,
    net::{SocketAddr, UdpSocket},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use super::walls::callers;
use crate::support::{Connection, Front, FrontSetup, Home, binary, certificates, initialize, modern, stderr};

const EVERYWHERE: &str = "0.0.0.0:0";
const ADA: (&str, &str) = ("Authorization", "Bearer token of ada");

/// The port of a gateway.
fn port(front: &Front) -> u16 {
    front.address.parse::<SocketAddr>().unwrap().port()
}

/// An address of this machine that is not loopback, if it has one. Nothing is sent to find it.
fn own_address() -> Option<String> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback()).then(|| address.to_string())
}

/// What a TLS client of somebody else's is answered, who believes this authority: the status and the body, or what it says
/// where it gets no answer.
fn encrypted(authority: &str, address: &str, request: &[u8]) -> Result<(u16, String), String> {
    let mut client = Command::new("openssl")
        .args(["s_client", "-quiet", "-verify_return_error", "-verify_hostname", "localhost"])
        .args(["-CAfile", authority, "-connect", address])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = client.stdin.take().unwrap();
    // Who does not believe it closes the pipe.
    let _ = stdin.write_all(request);
    let output = client.wait_with_output().unwrap();
    drop(stdin);
    let answer = String::from_utf8(output.stdout).unwrap();
    let status = answer.split_once("\r\n\r\n").and_then(|(head, _)| head.split(' ').nth(1)?.parse().ok());
    status.map(|status| (status, answer)).ok_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

/// A request whose connection ends with its answer.
fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    Connection::request(method, path, &[headers, &[("Connection", "close")]].concat(), body.as_bytes())
}

#[test]
fn s10_beyond_loopback_callers_are_served_over_tls_and_nobody_else() {
    let home = Home::new();
    let Some([authority, certificate, key]) = certificates(&home) else {
        println!("skipped: openssl is not installed");
        return;
    };
    // The files of TLS alone are not enough, and neither are callers alone.
    let tls = ["--tls-cert", &*certificate, "--tls-key", &*key];
    let start = |arguments: &[&str]| {
        let server = ["--", binary(), "fake-server"];
        let output = home.run(&[&["mcp", "--listen", EVERYWHERE], arguments, &server].concat());
        (output.status.code(), stderr(&output))
    };
    let (status, error) = start(&tls);
    assert!(status == Some(1) && error.contains("add a [[caller]]"), "{error}");
    home.write_config(&callers(&[("ada", "token of ada")]));
    let (status, error) = start(&[]);
    assert!(
        status == Some(1) && error.contains("--tls-cert") && error.contains("--insecure-behind-proxy"),
        "{error}"
    );
    let front = Front::start_with(
        &home,
        &FrontSetup { listen: Some(EVERYWHERE), arguments: &tls, ..FrontSetup::default() },
    );
    let port = port(&front);
    let opening = initialize("2025-11-25", &json!({})).to_string();
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "echo", "arguments": {"text": "far"}}});
    let (frame, mirrors) = modern(&json!(2), "tools/call", &call["params"]);
    let mirrors: Vec<_> = mirrors.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let addresses = std::iter::once("127.0.0.1".to_owned()).chain(own_address());
    for (number, address) in (1..).zip(addresses) {
        let (at, is_local) = (format!("{address}:{port}"), address == "127.0.0.1");
        let ask = |request: &[u8]| {
            encrypted(&authority, &at, request).unwrap_or_else(|error| panic!("{at}: {error}"))
        };
        for stranger in [&[][..], &[("Authorization", "Bearer token of eve")]] {
            assert_eq!(ask(&request("POST", "/mcp", stranger, &opening)).0, 401, "{at}");
        }
        assert_eq!(front.count("echo"), 2 * (number - 1), "{at}");
        let (status, answer) = ask(&request("POST", "/mcp", &[ADA, ("Host", &at)], &opening));
        assert_eq!(status, 200, "{answer}");
        let session = answer.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
        let headers = [ADA, ("Mcp-Session-Id", session)];
        for request in [
            request("POST", "/mcp", &headers, &call.to_string()),
            request("POST", "/mcp", &[&mirrors[..], &[ADA]].concat(), &frame.to_string()),
        ] {
            let (status, answer) = ask(&request);
            assert!(status == 200 && answer.contains("\"far\""), "{at}: {answer}");
        }
        assert_eq!(front.count("echo"), 2 * number, "{at}");
        // A name that nobody has let in, and counters for whoever is on this machine and says so.
        assert_eq!(ask(&request("POST", "/mcp", &[ADA, ("Host", "evil.example")], &opening)).0, 403, "{at}");
        for (host, expected) in
            [("localhost", if is_local { 200 } else { 404 }), (&at, if is_local { 200 } else { 404 })]
        {
            let (status, counters) = ask(&request("GET", "/metrics", &[ADA, ("Host", host)], ""));
            assert_eq!(
                (status, counters.contains("handraise_mcp_")),
                (expected, expected == 200),
                "{at} as {host}"
            );
        }
        // Who is not encrypted gets nothing, with a token or without.
        let mut open = Connection::open(&at);
        open.send("POST", "/mcp", &[ADA], opening.as_bytes());
        assert!(open.try_head().is_none_or(|head| head.status == 400), "{at}");
    }
    // A client that does not believe the certificate says nothing to us.
    let said =
        encrypted(&certificate, &format!("127.0.0.1:{port}"), &request("POST", "/mcp", &[ADA], &opening))
            .unwrap_err();
    assert!(said.contains("certificate verify failed"), "{said}");
}

#[test]
fn s10_behind_a_proxy_callers_are_served_without_tls_and_counters_for_this_machine_alone() {
    let home = Home::new();
    home.write_config(&callers(&[("ada", "token of ada")]));
    let arguments = ["--insecure-behind-proxy"];
    let front = Front::start_with(
        &home,
        &FrontSetup { listen: Some(EVERYWHERE), arguments: &arguments, ..FrontSetup::default() },
    );
    let port = port(&front);
    let opening = initialize("2025-11-25", &json!({})).to_string();
    let status = |address: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &str| {
        let mut connection = Connection::open(&format!("{address}:{port}"));
        connection.send(method, path, headers, body.as_bytes());
        connection.head().status
    };
    for address in std::iter::once("127.0.0.1".to_owned()).chain(own_address()) {
        assert_eq!(status(&address, "POST", "/mcp", &[], &opening), 401, "{address}");
        assert_eq!(status(&address, "POST", "/mcp", &[ADA], &opening), 200, "{address}");
        let expected = if address == "127.0.0.1" { 200 } else { 404 };
        assert_eq!(status(&address, "GET", "/metrics", &[], ""), expected, "{address}");
        // What came through the proxy comes from there, whatever it calls us.
        let forwarded = [("X-Forwarded-For", "192.0.2.7")];
        assert_eq!(status(&address, "GET", "/metrics", &forwarded, ""), 404, "{address}");
    }
    let counted = front.metric("refused_total{reason=\"unauthorized\"}");
    assert!(counted >= 1, "{counted}");
    let answer: Value = serde_json::from_str(&opening).unwrap();
    assert_eq!(front.post(&[ADA], &answer).head().status, 200);
}
