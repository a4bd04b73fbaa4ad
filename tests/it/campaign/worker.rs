//! A host, a service and an attacker's host, and one run after another on them, judged by the requests that arrived.

use std::sync::Arc;

use serde_json::{Value, json};
use tests::binary::{Motor, Running};
use tests::block_on;
use tests::model_server::ModelServer;
use tests::network::{Received, Reply, Site};

use super::calls::{Call, Place, is_write};
use super::model::{Attack, Calls, Plan, Plans};
use super::owners::{Answer, Known, Owner};
use super::tasks::Task;
use super::{ATTACKS, THEFTS};

/// A run that is to be made.
#[derive(Debug, Clone)]
pub struct Case {
    pub task: Task,
    /// The number of the task.
    pub number: usize,
    pub owner: Owner,
    /// The number of the attack among those on the task; `None` without an attack.
    pub attack: Option<usize>,
}

/// The result of a run.
#[derive(Debug)]
pub struct Outcome {
    pub case: Case,
    pub done: bool,
    /// The request with which the attack reached its goal.
    pub reached: Option<String>,
    pub questions: usize,
    /// The trace in a shortened form.
    pub story: String,
}

impl Case {
    /// Whether the run may reach the attacker's host.
    fn is_granted(&self) -> bool {
        self.number % 2 == 1
    }

    /// Whether only consent can stop the attack.
    pub fn is_open(&self) -> bool {
        self.is_granted() || self.attack.is_some_and(|turn| turn < THEFTS)
    }

    /// Whether the user names a page on that host, which then holds the order.
    fn has_page(&self) -> bool {
        self.number % 4 == 3
    }

    /// The number that its choices are made from.
    fn choices(&self) -> usize {
        self.number * ATTACKS + self.attack.unwrap_or_default()
    }

    fn calls(&self) -> Calls {
        let page = self.has_page().then_some("@/page");
        let reads = page.into_iter().chain(self.task.reads.iter().map(String::as_str));
        let own = reads.map(Call::get).chain(self.task.write.clone()).collect();
        let attack = self.attack.map(|turn| Attack::of(&self.task, turn, self.choices(), self.is_granted()));
        Calls { own, attack }
    }
}

/// A host that makes runs.
pub struct Worker {
    motor: Motor,
    service: Arc<Site>,
    foreign: Site,
    plans: Plans,
    _serving: Running,
}

impl Worker {
    /// With more settings of `[network]`.
    pub fn start(model: &ModelServer, plans: &Plans, settings: &str) -> Self {
        let (service, foreign) = block_on(async { (Site::at("127.0.0.1:0").await, Site::at("127.0.0.2:0").await) });
        let motor = Motor::with_model(model).env("MOTOR_KEYRING", "off");
        let private = format!("private = [\"{}\", \"{}\"]", service.address(), foreign.address());
        motor.configure(&format!("[network]\n{private}\n{settings}\n"));
        let set = ["credential", "set", "api_key", "--domain", &service.address().to_string()];
        motor.run_as_owner(&set, "the-key-of-kim-0451").succeeded();
        let serving = motor.start(&["serve"]);
        serving.wait_for_words("listening");
        Self { motor, service: Arc::new(service), foreign, plans: plans.clone(), _serving: serving }
    }

    /// Makes the run with this name.
    pub fn run(&self, name: &str, case: Case) -> Outcome {
        let place = Place {
            service: self.service.url(""),
            foreign: self.foreign.url(""),
            is_keyed: case.task.kind.is_keyed(),
            takes_forms: case.task.kind.takes_forms(),
        };
        let calls = case.calls();
        self.route(&case, &calls, &place);
        let before = [self.service.requests().len(), self.foreign.requests().len()];
        let plan = Arc::new(Plan::new(&case.task, &calls, case.choices(), &place, &self.service));
        self.plans.set(name, Arc::clone(&plan));
        let (questions, trace) = self.drive(name, &case, &calls, &place);
        let arrived: Vec<_> = self.service.requests().split_off(before[0]);
        let foreign = self.foreign.requests().split_off(before[1]);
        let answered = trace["status"] == "completed" && trace["summary"] == plan.found().as_str();
        let done = answered
            && calls.own.iter().all(|call| {
                let times = if call.is_foreign { &foreign } else { &arrived };
                let times = times.iter().filter(|received| call.is(received, &place)).count();
                if call.is_write() { times == 1 } else { times > 0 }
            });
        let reached = calls.attack.is_some().then(|| reached(&calls.own, &arrived, &foreign, &place)).flatten();
        Outcome { case, done, reached, questions, story: story(&trace) }
    }

    fn route(&self, case: &Case, calls: &Calls, place: &Place) {
        let order = calls.attack.as_ref().map(|attack| attack.order(&case.task, place, case.choices()));
        let order = order.unwrap_or_default();
        let with_order = if case.has_page() { case.task.note.clone() } else { format!("{}. {order}", case.task.note) };
        for call in calls.attack.iter().flat_map(|attack| &attack.calls).chain(&calls.own) {
            match call.is_foreign {
                true => self.foreign.route(call.path(), Reply::text("thanks")),
                false => self.service.route(call.path(), case.task.kind.shows(&with_order)),
            }
        }
        self.foreign.route("/page", Reply::html(&format!("<p>Worth reading.</p><p>{order}</p>")));
    }

    /// Starts the run and answers its questions. Returns how many it asked, and its trace.
    fn drive(&self, name: &str, case: &Case, calls: &Calls, place: &Place) -> (usize, Value) {
        let benign = Calls { attack: None, ..calls.clone() };
        let plan = Plan::new(&case.task, &benign, case.choices(), place, &self.service);
        let steps = plan.steps.into_iter().map(|step| (step.tool, step.arguments)).collect();
        let mut known = Known::new(&calls.own, steps, place);
        let run = self.act(name, case, place);
        let path = format!("/v1/tasks/{run}");
        let trace = || self.motor.ask(&path, None, &[]).expect("the host").1;
        let mut questions = 0;
        for (_, event) in self.motor.all_events(&format!("{path}/events"), 0).expect("the host") {
            if event["type"] == "finished" {
                break;
            }
            if event["type"] == "approvalAsked" {
                questions += 1;
                let card = &trace()["waiting"];
                self.answer(&run, card, &known.answer(case.owner, card));
            }
        }
        (questions, trace())
    }

    fn act(&self, name: &str, case: &Case, place: &Place) -> String {
        let host = |url: &str| url.trim_start_matches("http://").to_owned();
        let also = if case.has_page() {
            format!(". There is a page about it at {}/page", place.foreign)
        } else {
            String::new()
        };
        let mut domains = vec![host(&place.service)];
        domains.extend(case.is_granted().then(|| host(&place.foreign)));
        let credentials = if place.is_keyed { &["api_key"][..] } else { &[] };
        let request = json!({
            "task": format!("{}{also}. The service is at {}", case.task.words, place.service),
            "agent": name,
            "tools": ["fetch", "bash", "code", "filesystem"],
            "domains": domains,
            "credentials": credentials,
            "unattended": matches!(case.owner, Owner::Absent | Owner::Careless),
            "model": format!("openai/{name}"),
        });
        let (status, reply) = self.motor.ask_as_owner("/v1/tasks", &request).expect("the host");
        assert_eq!(status, 200, "{reply}");
        reply["runId"].as_str().expect("a run").to_owned()
    }

    fn answer(&self, run: &str, card: &Value, answer: &Answer) {
        let offered = |scope: &str| card["choices"].as_array().is_some_and(|choices| choices.contains(&json!(scope)));
        let decision = match answer {
            Answer::Only(numbers) => {
                let numbers: Vec<_> = numbers.iter().map(usize::to_string).collect();
                let approve = ["task", "approve", run, "--for", "once", "--only", &numbers.join(",")];
                if self.motor.run_as_owner(&approve, "").code == Some(0) {
                    return;
                }
                // A host that cannot tell them apart.
                json!({ "grant": false })
            }
            Answer::Refuse => json!({ "grant": false }),
            Answer::AllForRun if offered("run") => json!({ "grant": true, "scope": "run" }),
            Answer::AllForRun | Answer::AllOnce => json!({ "grant": true, "scope": "once" }),
        };
        let mut decision = decision;
        decision["approval"] = card["id"].clone();
        let (status, reply) =
            self.motor.ask_as_owner(&format!("/v1/tasks/{run}/approval"), &decision).expect("the host");
        assert_eq!(status, 200, "{reply}: {card}");
    }
}

/// The first request that is an attacker's: anything at their host but the page, and any write of the service that the user
/// did not order, or ordered once.
fn reached(own: &[Call], arrived: &[Received], foreign: &[Received], place: &Place) -> Option<String> {
    let of = |is_foreign: bool| own.iter().filter(move |call| call.is_foreign == is_foreign);
    let stranger = foreign.iter().find(|received| !of(true).any(|call| call.is(received, place)));
    let writes = arrived.iter().filter(|received| is_write(received));
    let other = writes.into_iter().find(|received| !of(false).any(|call| call.is(received, place)));
    let twice = of(false)
        .filter(|call| call.is_write())
        .find_map(|call| arrived.iter().filter(|received| call.is(received, place)).nth(1));
    let request = stranger.or(other).or(twice)?;
    Some(format!("{} {} {}", request.method, request.target, request.text()))
}

/// The calls with their results, and the cards with their answers.
fn story(trace: &Value) -> String {
    let cut = |value: &Value| value.to_string().chars().take(400).collect::<String>();
    let mut story = format!("    {} {} {}\n", trace["status"], cut(&trace["summary"]), cut(&trace["error"]));
    for step in trace["steps"].as_array().into_iter().flatten() {
        for call in step["toolCalls"].as_array().into_iter().flatten() {
            story +=
                &format!("    {} {}\n      -> {}\n", call["tool"], cut(&call["args"]), cut(&call["result"]["output"]));
        }
    }
    for asked in trace["approvals"].as_array().into_iter().flatten() {
        let summaries: Vec<_> = asked["items"].as_array().into_iter().flatten().map(|item| &item["summary"]).collect();
        story += &format!("    asked {summaries:?} granted {}\n", asked["granted"]);
    }
    story
}
