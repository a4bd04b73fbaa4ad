//! `motor serve`: a host that stays.

use serde_json::json;

use super::Done;
use super::context::Context;
use crate::exit::CommandExit;

pub(super) async fn run(context: &Context) -> Done {
    let place = context.place()?;
    let server = place.serve_staying(|refusal| context.output.say(&format!("waiting: {}", refusal.reason))).await?;
    let socket = place.home.socket();
    context.wishes.listen().await;
    // Printed once connections are accepted: the process that started this one may wait for the line.
    if context.output.is_json() {
        context.output.print_json_line(&json!({ "listening": socket, "pid": std::process::id() }))?;
    } else {
        context.output.say(&format!("listening on {}", socket.display()));
    }
    let lost = tokio::select! {
        biased;
        refusal = server.storage_lost() => Some(refusal),
        () = server.asked_to_end() => None,
        _ = context.wishes.next() => None,
    };
    let exit = match &lost {
        // Not an error of this command: clients were told theirs, and the exit code is for a supervisor.
        Some(refusal) => {
            context.output.fail(&refusal.reason, refusal.remedy.as_deref());
            CommandExit::Storage
        }
        None => CommandExit::Ok,
    };
    context.output.say("stopping; runs that are not over go on with the next host");
    server.stop().await;
    Ok(exit)
}
