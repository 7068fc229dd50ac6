//! The data that the page asks for.

use super::View;
use crate::ctl::COUNTING;
use crate::program::wait_until;
use serde_json::{Value, json};

/// Splits and joins; one way drops.
const SPLITTING: &str = "
    elementclass Half { input -> c :: Counter -> output; }
    s :: RatedSource(RATE 1000, LENGTH 60) -> e :: UDPIPEncap(10.0.0.1, 7, 10.0.0.2, 9)
      -> w :: RoundRobinSwitch;
    w[0] -> h :: Half -> d :: Discard;
    w[1] -> t :: Tee;
    t[0] -> d;
    t[1] -> f :: IPFilter(deny all) -> d;
    q :: RatedSource(RATE 500) -> full :: Queue(5) -> Idle;
    i :: RatedSource(RATE 100) -> k :: RoundRobinSwitch;
    k[0] -> m :: Counter -> Discard; k[1] -> m;";

/// The place of an element in the list of a graph.
#[track_caller]
fn place(graph: &Value, name: &str) -> usize {
    let elements = graph["elements"].as_array().unwrap();
    elements.iter().position(|it| it["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

/// Whether a rate is about that.
fn is_about(value: &Value, rate: f64) -> bool {
    value.as_f64().is_some_and(|value| (value - rate).abs() < rate / 3.0)
}

#[test]
fn rates_of_elements_and_connections_are_those_of_the_packets() {
    let view = View::new("w-rates", SPLITTING, &[]);
    let graph = view.json("/api/graph");
    let source = &graph["elements"][place(&graph, "s")];
    assert_eq!(source["class"], "RatedSource");
    assert_eq!(source["arguments"], "RATE 1000, LENGTH 60");
    let mut live = Value::Null;
    wait_until("rates come", || {
        live = view.json("/api/live");
        !live.is_null()
            && is_about(&live["elements"][place(&graph, "s")]["packets_per_second"], 1000.0)
    });
    let element = |name: &str| &live["elements"][place(&graph, name)];
    let edge = |from: &str, output: usize| {
        let from = place(&graph, from);
        let edges = graph["edges"].as_array().unwrap();
        let index = edges.iter().position(|it| it["from"] == from && it["output"] == output);
        live["edges"][index.unwrap()].clone()
    };
    for (from, output, rate) in
        [("s", 0, 1000.0), ("w", 0, 500.0), ("w", 1, 500.0), ("t", 0, 500.0), ("t", 1, 500.0)]
    {
        let edge = edge(from, output);
        assert!(is_about(&edge["packets_per_second"], rate), "{from} [{output}]: {edge}");
        assert_eq!(edge["bounds"], Value::Null, "{from} [{output}]: {edge}");
    }
    // Nothing passes the filter.
    assert_eq!(edge("f", 0), json!({}));
    assert!(is_about(&element("f")["drops_per_second"], 500.0), "{}", element("f"));
    assert!(element("f")["reasons"].as_object().unwrap().len() == 1, "{}", element("f"));
    assert_eq!(element("full")["queue"], json!({ "length": 5, "capacity": 5 }));
    // Both outputs of `k` go to one input: which took how many is not known.
    let bound = edge("k", 0);
    assert!(is_about(&bound["bounds"][0], 100.0), "{bound}");
    assert!(is_about(&bound["bounds"][1], 100.0), "{bound}");
    assert!(is_about(&bound["packets_per_second"], 100.0), "{bound}");
    wait_until("costs come", || {
        let live = view.json("/api/live");
        live["elements"][place(&graph, "e")]["nanoseconds_per_packet"].as_f64().is_some()
    });
}

#[test]
fn a_hot_swap_changes_the_graph_and_its_history_goes_on() {
    let view = View::new("w-swap", COUNTING, &[]);
    let rows = || {
        let history = view.json("/api/history?element=c");
        let packets = history["packets_per_second"].as_array().unwrap().clone();
        assert_eq!(history["time"].as_array().unwrap().len(), packets.len());
        packets
    };
    // The history begins at the start, whether anybody looks or not.
    wait_until("the history begins", || rows().len() >= 2);
    assert!(is_about(rows().last().unwrap(), 1000.0), "{:?}", rows());
    let before = rows().len();
    view.it.write(
        "one.click",
        "s :: RatedSource(LENGTH 60, RATE 100) -> new :: Null -> c :: Counter -> Discard;",
    );
    view.it.output(&["ctl", "one", "reload"]);
    let graph = view.json("/api/graph");
    assert_eq!(graph["version"]["replaced"], 1);
    place(&graph, "new");
    wait_until("rates of the new graph come", || {
        let live = view.json("/api/live");
        live["version"] == graph["version"]
            && live["elements"].as_array().unwrap().len()
                == graph["elements"].as_array().unwrap().len()
            && is_about(&live["elements"][place(&graph, "c")]["packets_per_second"], 100.0)
    });
    wait_until("the history goes on", || rows().len() > before + 1);
    assert!(is_about(&rows()[before - 1], 1000.0), "{:?}", rows());
    assert_eq!(view.json("/api/history?element=nobody")["time"], json!([]));
}

#[test]
fn an_element_has_its_handlers_values_and_manual_page() {
    let view = View::new("w-element", SPLITTING.rsplit_once("i ::").unwrap().0, &[]);
    let page = view.json("/api/element?name=full");
    assert!(page["summary"].as_str().unwrap().starts_with("Stores packets"), "{page}");
    let handlers = page["handlers"].as_array().unwrap();
    let handler = |name: &str| handlers.iter().find(|it| it["name"] == name).unwrap();
    assert_eq!(handler("capacity")["is_written"], true);
    assert_eq!(handler("length")["is_written"], false);
    assert!(handler("length")["doc"].as_str().unwrap().ends_with('.'));
    let values = page["values"].as_array().unwrap();
    let value = values.iter().find(|it| it["handler"] == "full.capacity").unwrap();
    assert_eq!((&value["value"], &value["is_cut"]), (&json!("5"), &json!(false)));
    let read = view.json("/api/read?handler=full.capacity&handler=h%2Fc.count&handler=no.no");
    assert_eq!(read[0]["value"], "5");
    assert!(read[1]["value"].as_str().unwrap().parse::<u64>().is_ok(), "{read}");
    assert!(read[2]["error"].as_str().unwrap().contains("no.no"), "{read}");
    let reply = view.get("/api/element?name=%3Cscript%3E");
    assert_eq!(reply.status, 400);
    assert!(reply.head.contains("content-type: text/plain"), "{}", reply.head);
    let manual = view.get("/api/manual?class=Queue");
    assert!(manual.body.contains("<h1>Queue</h1>"), "{}", manual.body);
    assert_eq!(view.get("/api/manual?class=Nothing").status, 404);
}

#[test]
fn drops_and_the_log_are_there() {
    let view = View::new("w-drops", SPLITTING.rsplit_once("i ::").unwrap().0, &[]);
    wait_until("the filter has dropped", || {
        let drops = view.json("/api/drops");
        let drops = drops.as_array().unwrap();
        drops.iter().any(|it| it["element"] == "f" && it["packets"].as_u64() > Some(0))
    });
    let log = view.json("/api/log");
    let lines = log.as_array().unwrap();
    assert!(lines.iter().any(|it| it["text"].as_str().unwrap().contains("running")), "{log}");
    let last = lines.last().unwrap()["number"].as_u64().unwrap();
    let newer = view.json(&format!("/api/log?after={last}"));
    assert!(newer.as_array().unwrap().iter().all(|it| it["number"].as_u64() > Some(last)));
}

#[test]
fn a_packet_is_traced_to_its_end() {
    let view = View::new("w-trace", SPLITTING.rsplit_once("q ::").unwrap().0, &[]);
    let start =
        json!({ "command": "start", "query": { "from": "s", "packets": 2, "snap_len": 64 } });
    let reply = view.post("/api/trace", &start);
    assert_eq!(reply.status, 200, "{}", reply.body);
    let session = serde_json::from_str::<Value>(&reply.body).unwrap()["session"].clone();
    let mut steps: Vec<Value> = Vec::new();
    wait_until("both packets have ended", || {
        let reply = view.post("/api/trace", &json!({ "command": "next", "session": session }));
        let answer: Value = serde_json::from_str(&reply.body).unwrap();
        steps.extend(answer["steps"].as_array().unwrap().iter().cloned());
        steps.iter().filter(|step| step["step"] == "finished").count() == 2
    });
    let elements: Vec<&str> = steps.iter().map(|step| step["element"].as_str().unwrap()).collect();
    for element in ["s", "e", "w", "h/c", "t", "f", "d"] {
        assert!(elements.contains(&element), "{element}: {elements:?}");
    }
    let dropped =
        |step: &&Value| step["element"] == "f" && step["results"][0]["result"] == "dropped";
    assert!(steps.iter().any(|step| dropped(&step)), "{steps:?}");
    let stop = view.post("/api/trace", &json!({ "command": "stop", "session": session }));
    assert_eq!(stop.status, 200, "{}", stop.body);
}

#[test]
fn a_history_has_gaps_where_the_element_was_not_there() {
    let view = View::new("w-gap", COUNTING, &[]);
    let packets = |element: &str| {
        let history = view.json(&format!("/api/history?element={element}"));
        history["packets_per_second"].as_array().unwrap().clone()
    };
    wait_until("the history begins", || packets("c").len() >= 2);
    view.it.write("one.click", "s :: RatedSource(LENGTH 60, RATE 100) -> Discard;");
    view.it.output(&["ctl", "one", "reload"]);
    wait_until("there is a gap", || packets("c").last().is_some_and(Value::is_null));
    view.it.write("one.click", COUNTING);
    view.it.output(&["ctl", "one", "reload"]);
    wait_until("the history goes on", || packets("c").last().is_some_and(Value::is_number));
    assert!(packets("c").iter().any(Value::is_null), "{:?}", packets("c"));
}
