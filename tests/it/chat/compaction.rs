//! Long conversations with the real program: the beginning stays as a summary, over the end of a host, also without a model for it
//! (SPEC COG-1, TAINT-1).

use serde_json::json;

use super::world::{Asked, World, call, says};

/// An agent that knows the cat as long as its name is in the request.
fn minds(asked: &Asked<'_>, has_summaries: bool) -> tests::model_server::Turn {
    match asked.last() {
        _ if asked.is_summary() && has_summaries => says("The owner has a cat called Tom."),
        // Not a text: the host writes excerpts.
        _ if asked.is_summary() => call("core_say", json!({ "text": "no" })),
        "what is my cat called?" if asked.text().contains("Tom") => says("Tom."),
        "what is my cat called?" => says("I do not know."),
        _ => says("I see."),
    }
}

#[test]
fn the_beginning_of_a_long_conversation_is_known_after_its_host_was_killed() {
    for (has_summaries, by) in [(true, "agent"), (false, "host")] {
        let world = World::new(move |asked| minds(asked, has_summaries));
        let serving = world.serve();
        let mut chat = world.follow();
        world.send("my cat is called Tom");
        chat.until("said", "I see.");
        for _ in 0..4 {
            world.send(&"a long story ".repeat(2_400));
            chat.until("said", "I see.");
        }
        serving.kill();
        let serving = world.serve();
        let (_, listed) = world.motor.ask("/v1/conversations", None, &[]).unwrap();
        assert_eq!(listed[0]["summary"]["by"], by, "{listed:#}");
        assert_eq!(listed[0]["sources"], json!(null), "{listed:#}");
        let mut chat = world.follow();
        world.send("what is my cat called?");
        chat.until("said", "Tom.");
        serving.kill();
    }
}
