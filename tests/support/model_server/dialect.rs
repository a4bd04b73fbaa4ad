//! A scripted turn in the words of each API.

use serde_json::{Value, json};

use super::{Call, Turn, Usage};

/// Which API a request speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    OpenAi,
    Responses,
    Anthropic,
    Gemini,
}

impl Dialect {
    pub(super) fn of(path: &str) -> Self {
        match path {
            "/v1/chat/completions" => Self::OpenAi,
            "/v1/responses" => Self::Responses,
            "/v1/messages" => Self::Anthropic,
            _ => Self::Gemini,
        }
    }

    /// How many messages of the model a request holds.
    pub(super) fn turn(self, body: &Value) -> usize {
        let (list, role) = match self {
            Self::OpenAi | Self::Anthropic => ("messages", "assistant"),
            Self::Gemini => ("contents", "model"),
            Self::Responses => return responses_turn(body),
        };
        let held = body[list].as_array().into_iter().flatten().filter(|message| message["role"] == role).count();
        held + number_after(&body[list].to_string(), "[host] To save room, steps 1 to ").unwrap_or_default()
    }

    /// The events of a streamed reply, as they go over the wire.
    pub(super) fn events(self, turn: &Turn, number: usize, body: &Value) -> Vec<String> {
        match self {
            Self::OpenAi => open_ai(turn, number, body),
            Self::Responses => responses(turn, number),
            Self::Anthropic => anthropic(turn, number),
            Self::Gemini => gemini(turn),
        }
    }
}

/// The attempt a request belongs to, from 0: its prompt says so.
pub(super) fn attempt(body: &Value) -> usize {
    number_after(&body.to_string(), "This is attempt ").map_or(0, |attempt| attempt - 1)
}

fn number_after(text: &str, words: &str) -> Option<usize> {
    let (_, after) = text.split_once(words)?;
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

fn usage(turn: &Turn) -> Usage {
    turn.usage.unwrap_or(Usage { input: 10, cached: 0, output: 5, cost: None })
}

fn finish(turn: &Turn) -> String {
    let usual = if turn.tool_calls.is_empty() { "stop" } else { "tool_calls" };
    turn.finish.clone().unwrap_or_else(|| usual.to_owned())
}

fn id(call: &Call, number: usize, index: usize) -> String {
    call.id.clone().unwrap_or_else(|| format!("call_{number}_{index}"))
}

fn arguments(call: &Call) -> String {
    let json = if call.arguments.is_null() { "{}".to_owned() } else { call.arguments.to_string() };
    call.arguments_text.clone().unwrap_or(json)
}

/// Pieces of a few characters, so that clients must put them together.
fn pieces(text: &str, size: usize) -> Vec<String> {
    let all: Vec<char> = text.chars().collect();
    all.chunks(size).map(|piece| piece.iter().collect()).collect()
}

fn open_ai_usage(turn: &Turn) -> Value {
    let Usage { input, cached, output, cost } = usage(turn);
    let mut usage = json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output});
    if cached > 0 {
        usage["prompt_tokens_details"] = json!({ "cached_tokens": cached });
    }
    if let Some(cost) = cost {
        usage["cost"] = cost.into();
    }
    usage
}

fn open_ai(turn: &Turn, number: usize, body: &Value) -> Vec<String> {
    let chunk = |choices: Value, usage: Value| {
        let chunk = json!({
            "id": format!("chatcmpl-{number}"), "object": "chat.completion.chunk", "created": 1,
            "model": body["model"], "choices": choices, "usage": usage,
        });
        format!("data: {chunk}\n\n")
    };
    let delta = |delta: Value| chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]), Value::Null);
    let mut events = vec![delta(json!({"role": "assistant", "content": ""}))];
    events.extend(pieces(&turn.reasoning, 8).iter().map(|text| delta(json!({"reasoning_content": text}))));
    events.extend(pieces(&turn.text, 8).iter().map(|text| delta(json!({"content": text}))));
    for (index, call) in turn.tool_calls.iter().enumerate() {
        let function = json!({"name": call.name, "arguments": ""});
        let head = json!({"index": index, "id": id(call, number, index), "type": "function", "function": function});
        events.push(delta(json!({"tool_calls": [head]})));
        for piece in pieces(&arguments(call), 12) {
            events.push(delta(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})));
        }
    }
    events.push(chunk(json!([{"index": 0, "delta": {}, "finish_reason": finish(turn)}]), Value::Null));
    if body["stream_options"]["include_usage"] == true {
        events.push(chunk(json!([]), open_ai_usage(turn)));
    }
    events.push("data: [DONE]\n\n".to_owned());
    events
}

/// A reply in one piece.
pub(super) fn whole(turn: &Turn, number: usize, body: &Value) -> Value {
    let call = |(index, call): (usize, &Call)| {
        let function = json!({"name": call.name, "arguments": arguments(call)});
        json!({"id": id(call, number, index), "type": "function", "function": function})
    };
    let mut message = json!({"role": "assistant", "content": turn.text});
    if !turn.tool_calls.is_empty() {
        message["tool_calls"] = turn.tool_calls.iter().enumerate().map(call).collect();
    }
    json!({
        "id": format!("chatcmpl-{number}"), "object": "chat.completion", "created": 1, "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": finish(turn)}],
        "usage": open_ai_usage(turn),
    })
}

fn anthropic(turn: &Turn, number: usize) -> Vec<String> {
    let Usage { input, output, .. } = usage(turn);
    let event = |kind: &str, mut data: Value| {
        data["type"] = kind.into();
        format!("event: {kind}\ndata: {data}\n\n")
    };
    let message = json!({
        "id": format!("msg_{number}"), "type": "message", "role": "assistant", "content": [], "model": "scripted",
        "usage": {"input_tokens": input, "output_tokens": 1},
    });
    let mut events = vec![event("message_start", json!({"message": message}))];
    let mut index = 0;
    let mut block = |start: Value, deltas: Vec<Value>| {
        events.push(event("content_block_start", json!({"index": index, "content_block": start})));
        for delta in deltas {
            events.push(event("content_block_delta", json!({"index": index, "delta": delta})));
        }
        events.push(event("content_block_stop", json!({"index": index})));
        index += 1;
    };
    if !turn.text.is_empty() {
        let deltas = pieces(&turn.text, 8).into_iter().map(|text| json!({"type": "text_delta", "text": text}));
        block(json!({"type": "text", "text": ""}), deltas.collect());
    }
    for (position, call) in turn.tool_calls.iter().enumerate() {
        let deltas = pieces(&arguments(call), 12);
        let deltas = deltas.into_iter().map(|text| json!({"type": "input_json_delta", "partial_json": text}));
        let start = json!({"type": "tool_use", "id": id(call, number, position), "name": call.name, "input": {}});
        block(start, deltas.collect());
    }
    let reason = match finish(turn).as_str() {
        "tool_calls" => "tool_use",
        "length" => "max_tokens",
        _ => "end_turn",
    };
    let usage = json!({"output_tokens": output});
    events.push(event("message_delta", json!({"delta": {"stop_reason": reason}, "usage": usage})));
    events.push(event("message_stop", json!({})));
    events
}

/// One reply of the model may be several items in a row.
fn responses_turn(body: &Value) -> usize {
    let of_model = |item: &Value| item["role"] == "assistant" || item["type"] == "function_call";
    let items: Vec<bool> = body["input"].as_array().into_iter().flatten().map(of_model).collect();
    items.chunk_by(|one, next| one == next).filter(|chunk| chunk.contains(&true)).count()
}

/// Whole items only: clients need no deltas.
fn responses(turn: &Turn, number: usize) -> Vec<String> {
    let Usage { input, output, .. } = usage(turn);
    let event = |kind: &str, mut data: Value| {
        data["type"] = kind.into();
        format!("event: {kind}\ndata: {data}\n\n")
    };
    let reply = format!("resp_{number}");
    let mut items = Vec::new();
    if !turn.text.is_empty() {
        let content = json!([{"type": "output_text", "text": turn.text, "annotations": []}]);
        let id = format!("msg_{number}");
        items
            .push(json!({"type": "message", "id": id, "role": "assistant", "status": "completed", "content": content}));
    }
    for (index, call) in turn.tool_calls.iter().enumerate() {
        let id = id(call, number, index);
        let mut item = json!({
            "type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": call.name,
            "arguments": arguments(call), "status": "completed",
        });
        // Tools of a server are in its namespace.
        if let Some((namespace, name)) = call.name.rsplit_once("__") {
            (item["namespace"], item["name"]) = (namespace.into(), name.into());
        }
        items.push(item);
    }
    let mut events = vec![event("response.created", json!({"response": {"id": reply, "status": "in_progress"}}))];
    let done = |(index, item): (usize, &Value)| {
        event("response.output_item.done", json!({"output_index": index, "item": item}))
    };
    events.extend(items.iter().enumerate().map(done));
    let usage = json!({"input_tokens": input, "output_tokens": output, "total_tokens": input + output});
    let whole = json!({"id": reply, "status": "completed", "output": items, "usage": usage});
    events.push(event("response.completed", json!({"response": whole})));
    events
}

fn gemini(turn: &Turn) -> Vec<String> {
    let Usage { input, output, .. } = usage(turn);
    let chunk = |parts: Value, reason: Value| {
        let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
        if !reason.is_null() {
            candidate["finishReason"] = reason;
        }
        let usage = json!({
            "promptTokenCount": input, "candidatesTokenCount": output, "totalTokenCount": input + output,
        });
        format!("data: {}\r\n\r\n", json!({"candidates": [candidate], "usageMetadata": usage}))
    };
    let mut events: Vec<_> =
        pieces(&turn.text, 8).iter().map(|text| chunk(json!([{"text": text}]), Value::Null)).collect();
    for call in &turn.tool_calls {
        let call = json!({"functionCall": {"name": call.name, "args": call.arguments}});
        events.push(chunk(json!([call]), Value::Null));
    }
    let reason = if finish(turn) == "length" { "MAX_TOKENS" } else { "STOP" };
    events.push(chunk(json!([{"text": ""}]), reason.into()));
    events
}
