//! Generates objects to apply, from a seed.

use biplane_model::{Object, Value};
use biplane_testkit::Random;
use serde_json::{Map, json};

/// Makes the content of objects.
pub(super) struct Generator {
    pub random: Random,
    /// Whether to make what a client seldom sends: nulls, empty values, atomic objects, values
    /// that get defaults.
    pub odd: bool,
}

type Make = fn(&mut Generator) -> Value;

const WIDGET: &[(&str, Make)] = &[
    ("replicas", |g| json!(g.random.below(3))),
    ("share", |g| g.one_of(&[json!(1), json!(1.0), json!(1.5)])),
    ("flag", |g| json!(g.chance(50))),
    ("text", Generator::word),
    ("size", |g| g.one_of(&[json!("small"), json!("big")])),
    ("maybe", Generator::word),
    ("port", |g| g.one_of(&[json!(80), json!("http")])),
    ("tags", Generator::set),
    ("numbers", |g| g.some_of(&[json!(1), json!(2), json!(10)])),
    ("args", Generator::list),
    ("ports", Generator::ports),
    ("containers", Generator::containers),
    ("extra", |g| g.fields(&[("a", Generator::word), ("b", Generator::word)])),
    ("nested", |g| g.fields(&[("k", Generator::pair), ("l", Generator::pair)])),
    ("settings", Generator::settings),
    ("free", Generator::free),
    ("any", Generator::anything),
];

const ODD_WIDGET: &[(&str, Make)] = &[
    ("rows", |g| g.some_of(&[json!({"a": 1}), json!({"a": 1, "b": 7}), json!({"b": 2})])),
    ("sealed", |g| g.fields(&[("a", Generator::word), ("b", Generator::word)])),
    ("filled", |g| {
        g.one_of(&[json!({}), json!({"x": 1}), json!({"yy": 2}), json!({"x": 1, "yy": 2})])
    }),
    ("template", |g| {
        let metadata = g.fields(&[("labels", |g| g.fields(&[("a", Generator::word)]))]);
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": g.settings()})
    }),
];

const DUAL: &[(&str, Make)] = &[
    ("note", Generator::word),
    ("tags", Generator::set),
    ("items", |g| {
        let names = g.some_of(&[json!("x"), json!("y")]);
        g.items(&names, "name", &[("size", |g| json!(g.random.below(4)))])
    }),
    ("groups", |g| g.fields(&[("k", Generator::set), ("l", Generator::set)])),
];

const ODD_DUAL: &[(&str, Make)] = &[
    ("zones", |g| g.some_of(&[json!({}), json!({"zone": "b"}), json!({"zone": "a", "text": "x"})])),
    ("strategy", |g| {
        let whole = json!({"type": "Rolling", "limits": {"most": 1}});
        g.one_of(&[json!({}), json!({"type": "Rolling"}), whole])
    }),
];

const SIMPLE: &[(&str, Make)] = &[("a", Generator::word), ("b", Generator::word)];

const PLAIN: &[(&str, Make)] =
    &[("x", Generator::anything), ("y", Generator::settings), ("l", Generator::list)];

const STATUS: &[(&str, Make)] = &[
    ("phase", |g| g.one_of(&[json!("Up"), json!("Down")])),
    ("count", |g| json!(g.random.below(3))),
    ("conditions", |g| {
        let types = g.some_of(&[json!("Ready"), json!("Synced")]);
        let mut items = g.items(&types, "type", &[("reason", Generator::word)]);
        for item in items.as_array_mut().unwrap() {
            item["status"] = g.one_of(&[json!("True"), json!("False")]);
        }
        items
    }),
];

impl Generator {
    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.random.below(100) < percent
    }

    pub(super) fn one_of(&mut self, choices: &[Value]) -> Value {
        choices[self.random.below(choices.len())].clone()
    }

    pub(super) fn shuffle(&mut self, items: &mut [Value]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.random.below(at + 1));
        }
    }

    /// At least one of the choices, in any order.
    fn some_of(&mut self, choices: &[Value]) -> Value {
        let mut items = choices.to_vec();
        self.shuffle(&mut items);
        items.truncate(1 + self.random.below(items.len()));
        Value::Array(items)
    }

    fn word(&mut self) -> Value {
        self.one_of(&[json!("x"), json!("y"), json!("<z>")])
    }

    fn set(&mut self) -> Value {
        self.some_of(&[json!("a"), json!("b"), json!("<c&>")])
    }

    fn list(&mut self) -> Value {
        (0..=self.random.below(3)).map(|_| self.word()).collect()
    }

    fn pair(&mut self) -> Value {
        self.fields(&[("x", |g| json!(g.random.below(2))), ("yy", |g| json!(g.random.below(2)))])
    }

    fn settings(&mut self) -> Value {
        let deep: Make = |g| g.fields(&[("c", Generator::word), ("d", Generator::word)]);
        self.fields(&[("a", Generator::word), ("b", Generator::word), ("deep", deep)])
    }

    fn free(&mut self) -> Value {
        self.fields(&[
            ("p", Generator::anything),
            ("known", Generator::known),
            ("list", Generator::set),
        ])
    }

    fn known(&mut self) -> Value {
        json!({"x": self.random.below(3)})
    }

    fn anything(&mut self) -> Value {
        match self.random.below(4) {
            0 => self.word(),
            1 => self.list(),
            2 => json!([{"a": self.word()}, 1.5]),
            _ => self.settings(),
        }
    }

    /// Items with these keys, each with some of the fields.
    fn items(&mut self, keys: &Value, key: &str, fields: &[(&str, Make)]) -> Value {
        let keys = keys.as_array().unwrap();
        let item = |name: &Value| {
            let mut item = if self.chance(70) { self.fields(fields) } else { json!({}) };
            item[key] = name.clone();
            item
        };
        keys.iter().map(item).collect()
    }

    fn ports(&mut self) -> Value {
        let numbers = self.some_of(&[json!(80), json!(443)]);
        let fields: &[(&str, Make)] = &[
            ("protocol", |g| g.one_of(&[json!("TCP"), json!("UDP")])),
            ("name", Generator::word),
            ("target", |g| g.one_of(&[json!(1), json!("web")])),
        ];
        let mut ports = self.items(&numbers, "port", fields);
        if self.chance(20) {
            ports.as_array_mut().unwrap().push(json!({"port": 80, "protocol": "UDP"}));
        }
        ports
    }

    fn containers(&mut self) -> Value {
        let names = self.some_of(&[json!("one"), json!("two"), json!("three")]);
        let env: Make = |g| {
            let names = g.some_of(&[json!("A"), json!("B")]);
            g.items(&names, "name", &[("value", Generator::word)])
        };
        let limits: Make = |g| g.fields(&[("cpu", |g| g.one_of(&[json!(1), json!("1")]))]);
        let fields: &[(&str, Make)] = &[
            ("image", Generator::word),
            ("args", Generator::list),
            ("limits", limits),
            ("env", env),
        ];
        self.items(&names, "name", fields)
    }

    /// Some of the fields, at least one. Odd ones may be null or empty.
    fn fields(&mut self, fields: &[(&str, Make)]) -> Value {
        let mut out = Map::new();
        for (name, make) in fields {
            if self.chance(40) {
                out.insert((*name).to_owned(), make(self));
            }
        }
        if out.is_empty() {
            let (name, make) = fields[self.random.below(fields.len())];
            out.insert(name.to_owned(), make(self));
        }
        if self.odd && self.chance(15) {
            let names: Vec<String> = out.keys().cloned().collect();
            let name = &names[self.random.below(names.len())];
            let hollow = hollow(&out[name]);
            out[name] = if self.chance(30) { Value::Null } else { hollow };
        }
        Value::Object(out)
    }

    /// A few of the fields.
    fn few(&mut self, fields: &[(&str, Make)]) -> Value {
        let mut fields = fields.to_vec();
        while fields.len() > 4 {
            fields.remove(self.random.below(fields.len()));
        }
        self.fields(&fields)
    }

    pub(super) fn status(&mut self) -> Value {
        json!({"status": self.fields(STATUS)})
    }

    /// The content of an object of a kind, without its name.
    pub(super) fn content(&mut self, kind: &str) -> Value {
        let odd = self.odd;
        let with = |plain: &[(&'static str, Make)], more: &[(&'static str, Make)]| {
            if odd { [more, plain, more].concat() } else { plain.to_vec() }
        };
        let mut content = match kind {
            "Widget" => json!({"spec": self.few(&with(WIDGET, ODD_WIDGET))}),
            "Dual" => json!({"spec": self.fields(&with(DUAL, ODD_DUAL))}),
            "Simple" => {
                let mut spec = self.fields(SIMPLE);
                spec["a"] = self.word();
                let mut content = json!({"spec": spec});
                if self.chance(20) {
                    content["status"] = json!({"s": self.word()});
                }
                content
            }
            _ => json!({"spec": self.few(PLAIN), "data": self.anything()}),
        };
        if self.chance(40) {
            content["metadata"] = self.metadata();
        }
        if odd && kind == "Widget" && self.chance(5) {
            content["status"] = self.status()["status"].clone();
        }
        content
    }

    fn metadata(&mut self) -> Value {
        let owners: Make = |g| {
            let uids = g.some_of(&[json!("u1"), json!("u2")]);
            let fixed = |mut item: Value| {
                let name = item["uid"].clone();
                item["name"] = name;
                item["apiVersion"] = json!("v1");
                item["kind"] = json!("Owner");
                item
            };
            let items = g.items(&uids, "uid", &[("controller", |g| json!(g.chance(50)))]);
            items.as_array().unwrap().iter().cloned().map(fixed).collect()
        };
        let texts: Make = |g| g.fields(&[("a", Generator::word), ("b", Generator::word)]);
        let finalizers: Make = |g| g.some_of(&[json!("example.org/a"), json!("example.org/b")]);
        let mut metadata = self.fields(&[
            ("labels", |g| {
                let labels = g.some_of(&[json!("a"), json!("b")]);
                labels
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|l| (l.as_str().unwrap().to_owned(), json!("x")))
                    .collect()
            }),
            ("annotations", texts),
            ("ownerReferences", owners),
            ("finalizers", finalizers),
        ]);
        if self.odd && self.chance(20) {
            metadata["creationTimestamp"] = Value::Null;
        }
        metadata
    }

    /// The same content with a small difference. It may take values over from the live object.
    pub(super) fn variant(&mut self, content: &Value, kind: &str, live: Option<&Object>) -> Value {
        let mut content = content.clone();
        let spec = live.and_then(|live| live.get("spec")).and_then(Value::as_object);
        match (self.random.below(4), spec) {
            (0, Some(spec)) if !spec.is_empty() => {
                let (name, value) = spec.iter().nth(self.random.below(spec.len())).unwrap();
                if content["spec"].is_object() {
                    content["spec"][name] = value.clone();
                }
            }
            (1, _) => {
                for (name, value) in self.content(kind).as_object().unwrap() {
                    content[name] = value.clone();
                }
            }
            _ => self.alter(&mut content),
        }
        content
    }

    fn alter(&mut self, value: &mut Value) {
        let deeper = self.chance(75);
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                let name = fields.keys().nth(self.random.below(fields.len())).unwrap().clone();
                if deeper {
                    self.alter(&mut fields[&name]);
                } else {
                    fields.remove(&name);
                }
            }
            Value::Array(items) if !items.is_empty() => {
                let at = self.random.below(items.len());
                match self.random.below(4) {
                    0 => self.shuffle(items),
                    1 => drop(items.remove(at)),
                    2 if self.odd => items.push(items[at].clone()),
                    _ => self.alter(&mut items[at]),
                }
            }
            Value::String(_) => *value = self.word(),
            Value::Number(_) => *value = json!(self.random.below(3)),
            Value::Bool(flag) => *flag = !*flag,
            Value::Null | Value::Array(_) | Value::Object(_) => {}
        }
    }
}

/// The empty value of the same type, or null.
fn hollow(value: &Value) -> Value {
    match value {
        Value::Array(_) => json!([]),
        Value::Object(_) => json!({}),
        _ => Value::Null,
    }
}
