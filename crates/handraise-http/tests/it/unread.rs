//! A request that its server does not read.

use std::{io::Read as _, net::TcpListener, time::Duration};

use handraise_http::upstream::Link;
use tokio::time::timeout;

use crate::rig::link_to;

/// Far more than a connection holds that nobody reads.
const LENGTH: usize = 32 << 20;

/// Completes once nothing counts as queued.
async fn none_queued(link: &Link) {
    let all = async {
        while link.queued() > 0 {
            link.moved().await;
        }
    };
    timeout(Duration::from_secs(30), all).await.unwrap_or_else(|_| panic!("{} bytes", link.queued()));
}

#[tokio::test(flavor = "multi_thread")]
async fn s37_a_request_counts_as_queued_until_the_server_has_taken_it_and_no_longer() {
    const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
    for meta in ["", META] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (link, _arrivals) = link_to(&format!("http://{}/mcp", listener.local_addr().unwrap()));
        let comma = if meta.is_empty() { "" } else { "," };
        let text = "x".repeat(LENGTH);
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","text":"{text}"{comma}{meta}}}}}"#
        );
        let length = call.len();
        link.send(call.into());
        let (mut server, _) = tokio::task::block_in_place(|| listener.accept()).unwrap();
        server.read_exact(&mut [0; 1000]).unwrap();
        assert_eq!(link.queued(), length, "it is on its way");
        // It is read, and not answered.
        let reading = std::thread::spawn(move || {
            let mut place = vec![0; 1 << 20];
            let mut taken = 1000;
            while taken < length {
                taken += server.read(&mut place).unwrap();
            }
            server
        });
        none_queued(&link).await;
        drop(reading.join().unwrap());
    }
}
