//! The seam of the main loop: it records and observes, and appends the beliefs to its prompt (SPEC CX-1, CX-7).

use std::collections::BTreeMap;
use std::sync::Arc;

use agent::config::LoadedConfig;
use agent::{CortexEvent, CortexEventBody, Home, Host, HostOptions, ReflectRequest};
use base::{AgentName, Random, SystemClock};
use cortex::Injected;
use ledger::{ChannelName, Direction, NewInteraction, PeerId};
use tests::block_on;

use super::{Mind, believing, trusting};

/// A host in this process, on the home of the mind.
async fn open(mind: &Mind) -> Host {
    let home = Home::at(mind.motor.home().to_owned());
    let url = mind.server.base_url();
    let env = base::env_of_list(&[
        ("LLM_CORTEX_MODEL", "openai/reflector"),
        ("OPENAI_API_KEY", "sk-test"),
        ("OPENAI_BASE_URL", &url),
    ]);
    let options = HostOptions {
        config: LoadedConfig::load(&home, None, &env, &[]).unwrap(),
        home,
        env,
        vault_variables: BTreeMap::new(),
        compile_worker: None,
        clock: Arc::new(SystemClock::default()),
        random: Arc::new(Random::seeded(7)),
    };
    Host::open_idle(options, None).await.unwrap()
}

fn peer(id: &str) -> PeerId {
    PeerId::parse(id).unwrap()
}

fn message(summary: &str) -> NewInteraction {
    let channel = ChannelName::parse("http").unwrap();
    NewInteraction { direction: Direction::Incoming, channel, summary: summary.to_owned() }
}

#[test]
fn beliefs_reach_the_prompt_while_the_cortex_is_on_and_events_are_heard() {
    let mind = Mind::new();
    block_on(async {
        let host = open(&mind).await;
        let (reflections, main, other) = (&host.reflections, AgentName::default(), AgentName::parse("other").unwrap());
        let injected = |agent: &AgentName| reflections.inject(agent, None, 20_000);
        let mut events = reflections.events();
        reflections.record(&main, &peer("mai"), vec![message("hello"), message("again")]).await.unwrap();
        assert_eq!(reflections.status(&main).await.unwrap().activity.interactions, 2);
        assert_eq!(injected(&main), Injected::default());
        mind.replies({
            let mut reply = believing("mai", "mai-is-polite", "Mai is polite", "r");
            reply["assessments"] = trusting("mai", 1)["assessments"].clone();
            reply
        });
        // Seen without being named: there was activity.
        let reply = reflections.reflect(ReflectRequest::default()).await.unwrap();
        assert_eq!(reply.record.peers_shown, 1);
        let Injected { text, sources } = injected(&main);
        let lines: Vec<&str> = text.lines().collect();
        let ["", "", "## Cortex Beliefs", "", begin, "- mai-is-polite (mai): Mai is polite", end] = lines[..] else {
            panic!("{text}")
        };
        assert!(begin.starts_with("<untrusted-") && end.starts_with("</untrusted-"), "{text}");
        assert_eq!(sources.into_iter().collect::<Vec<_>>(), ["peer:mai"]);
        assert_eq!(injected(&other), Injected::default());
        assert_eq!(reflections.inject(&main, Some(&peer("mai")), 20_000).text, text);
        assert_eq!(reflections.inject(&main, Some(&peer("ben")), 20_000), Injected::default());
        let Ok(CortexEvent { agent, body: CortexEventBody::AfterAssess(assessed) }) = events.try_recv() else {
            panic!("no event")
        };
        assert_eq!((agent, assessed.trust, assessed.peer_id), (main.clone(), 1, peer("mai")));
        let Ok(CortexEvent { body: CortexEventBody::AfterReflect(reflected), .. }) = events.try_recv() else {
            panic!("no event")
        };
        assert_eq!((reflected.cycle, reflected.beliefs_added), (1, vec!["mai-is-polite".to_owned()]));

        reflections.switch(&main, false).await.unwrap();
        assert_eq!((injected(&main).text, reflections.beliefs(&main).await.unwrap().len()), (String::new(), 1));
        assert!(reflections.offers_assess_peer(&main).await && !reflections.offers_assess_peer(&other).await);
        reflections.switch(&main, true).await.unwrap();
        assert_eq!(injected(&main).text, text);
        host.shutdown().await;
    });
}
