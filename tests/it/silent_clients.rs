//! Clients that connect to the socket of a host and say nothing: they are dropped, and the owner's commands get through.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use serde_json::json;
use tests::binary::Motor;
use tests::model_server::ModelServer;
use tests::{Patience, block_on};

#[test]
fn half_open_connections_do_not_keep_the_owner_out_and_watches_stay() {
    let model = block_on(ModelServer::scripted(json!({ "turns": [{ "text": "done", "gate": true }] })));
    let motor = Motor::with_model(&model);
    let serving = motor.start(&["serve"]);
    serving.wait_for_words("listening");
    let run = motor.stdout(&["act", "wait", "--detach"]).trim().to_owned();
    let socket = motor.home().join("host.sock");
    let mut watching = UnixStream::connect(&socket).unwrap();
    write!(watching, "GET /v1/tasks/{run}/events HTTP/1.1\r\nhost: m\r\n\r\n").unwrap();
    let watching = std::thread::spawn(move || {
        let mut events = Vec::new();
        let mut buffer = [0; 4096];
        while !String::from_utf8_lossy(&events).contains("completed") {
            let read = watching.read(&mut buffer).unwrap();
            assert!(read > 0, "the watch broke off: {}", String::from_utf8_lossy(&events));
            events.extend_from_slice(&buffer[..read]);
        }
    });
    // More than there are places, each with another beginning of a request.
    let mut silent: Vec<_> = ["", "GET", "GET /v1/host HTTP/1.1\r\nhost: m", "POST /v1/tasks HTTP/1.1\r\nhost: m\r\n"]
        .repeat(75)
        .into_iter()
        .map(|said| {
            let mut stream = UnixStream::connect(&socket).unwrap();
            stream.write_all(said.as_bytes()).unwrap();
            stream
        })
        .collect();
    for _ in 0..3 {
        assert!(motor.stdout(&["task", "list"]).contains(&run[..12]));
    }
    let mut patience = Patience::default();
    for stream in &mut silent {
        // The end of the connection, with or without an answer that says why.
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).ok();
        assert!(patience.lasts() && !rest.starts_with(b"HTTP/1.1 200"));
    }
    model.release();
    watching.join().unwrap();
}
