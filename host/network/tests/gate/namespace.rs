//! The guard with addresses that really are public, in a network namespace of the test's own: nothing can leave it.

use std::process::Command;

use network::Rule;

use crate::dns::Dns;
use crate::setup::{Setup, blocked, get};

/// Two public addresses of well-known name servers, on the loopback device of the namespace.
const SCRIPT: &str = "ip link set lo up && ip addr add 192.5.5.241/32 dev lo && ip addr add 2001:500:2f::f/128 dev lo nodad && \
    exec \"$0\" --exact namespace::within --ignored --nocapture";

#[test]
fn public_addresses_pass_by_any_pattern() {
    let program = std::env::current_exe().unwrap();
    let output = Command::new("unshare").args(["--map-root-user", "--net", "sh", "-c", SCRIPT]).arg(program).output();
    let output = output.expect("`unshare` and `ip` are needed (util-linux, iproute2)");
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[tokio::test]
#[ignore = "runs inside the namespace that `public_addresses_pass_by_any_pattern` makes"]
async fn within() {
    let talk = |mut stream: tokio::net::TcpStream| async move {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let mut request = [0; 4096];
        let _read = stream.read(&mut request).await.unwrap();
        stream.write_all(&crate::server::response("public")).await.unwrap();
    };
    let trap = crate::server::Server::trap("127.0.0.1", 80).await;
    for address in ["192.5.5.241:80", "[2001:500:2f::f]:80"] {
        let listener = tokio::net::TcpListener::bind(address).await.unwrap();
        tokio::spawn(async move {
            loop {
                tokio::spawn(talk(listener.accept().await.unwrap().0));
            }
        });
    }
    let dns =
        Dns::answering(&[&["192.5.5.241"], &["2001:500:2f::f"], &["192.5.5.241", "127.0.0.1"], &["127.0.0.1"]]).await;
    let call = Setup::default().domains(&["*"]).dns(&dns).call();
    for _ in 0..2 {
        assert_eq!(get(&call, "http://site.example/").await.unwrap(), "public");
    }
    for _ in 0..2 {
        assert_eq!(blocked(get(&call, "http://site.example/").await).rule, Rule::PrivateAddress);
    }
    for url in ["http://192.5.5.241/", "http://0xc0.5.5.241/", "http://[2001:500:2f::f]/"] {
        assert_eq!(get(&call, url).await.unwrap(), "public", "{url}");
    }
    for url in ["http://127.0.0.1/", "http://0x7f.1/", "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://0/"] {
        assert_eq!(blocked(get(&call, url).await).rule, Rule::PrivateAddress, "{url}");
    }
    assert_eq!(trap.connections(), 0);
}
