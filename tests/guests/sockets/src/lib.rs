//! Uses the network the ordinary way, so it imports `wasi:sockets`: a host that gives no network refuses to load it.

use std::{net::TcpStream, time::Duration};

use motor_sdk::{Context, Tool, ToolError};

motor_sdk::arguments! {
    struct Connect {
        /// An address and port, such as `127.0.0.1:80`.
        address: String,
    }
}

fn connect(arguments: Connect, _context: &Context) -> Result<String, ToolError> {
    let address = arguments.address.parse().map_err(|_| ToolError::bad_input("`address` is no address and port"))?;
    match TcpStream::connect_timeout(&address, Duration::from_secs(1)) {
        Ok(_) => Ok("REACHED the network".to_owned()),
        Err(error) => Err(ToolError::denied(error.kind().to_string())),
    }
}

fn tools() -> Vec<Tool> {
    vec![Tool::new("connect", "Connects to an address.", connect)]
}

motor_sdk::export!(tools);
