//! `motor serve`: a host that stays.

use serde_json::json;

use super::Done;
use super::context::Context;
use crate::exit::Exit;
use crate::http::Lifetime;

pub(super) async fn run(context: &Context) -> Done {
    let place = context.place()?;
    let server = place.serve(Lifetime::Stays).await?;
    let socket = place.home.socket();
    context.wishes.listen().await;
    // Printed when connections are accepted: whoever started this process may wait for the line.
    if context.output.is_json() {
        context.output.print_json_line(&json!({ "listening": socket, "pid": std::process::id() }))?;
    } else {
        context.output.say(&format!("listening on {}", socket.display()));
    }
    tokio::select! {
        () = server.asked_to_end() => {}
        _ = context.wishes.next() => {}
    }
    context.output.say("stopping; runs that are not over go on with the next host");
    server.stop().await;
    Ok(Exit::Ok)
}
