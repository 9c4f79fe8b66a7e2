//! Tests of the reviews, on an in-memory API server.

use biplane_cluster::memory::ApiServer;
use biplane_cluster::{Source, Write};
use biplane_model::{Gvk, Object, ObjectId, Value};
use serde_json::json;
use tokio::time::Instant;

use super::*;

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

async fn post(reviews: &Arc<Reviews>, path: &str, body: &str) -> Page {
    let posted = Posted {
        path: path.to_owned(),
        content_type: "application/json".to_owned(),
        body: body.as_bytes().to_vec(),
        since: Instant::now(),
    };
    answer(Arc::clone(reviews), posted).await
}

/// The response to a review.
async fn ask(
    reviews: &Arc<Reviews>,
    path: &str,
    operation: &str,
    new: &Value,
    old: &Value,
) -> Value {
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {"uid": "u", "operation": operation, "object": new, "oldObject": old},
    });
    let page = post(reviews, path, &review.to_string()).await;
    assert_eq!((page.status, page.content_type), (200, "application/json"), "{}", page.body);
    let answer: Value = serde_json::from_str(&page.body).unwrap();
    assert_eq!(answer["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(
        (&answer["kind"], &answer["response"]["uid"]),
        (&json!("AdmissionReview"), &json!("u"))
    );
    answer["response"].clone()
}

/// WH-3 of validation
#[tokio::test]
async fn reviews_that_cannot_be_read_are_bad_requests() {
    let reviews = reviews(Arc::new(ApiServer::default()), true);
    let review = |change: &dyn Fn(&mut Value)| {
        let mut review = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {"uid": "u", "operation": "UPDATE", "object": {}, "oldObject": {}},
        });
        change(&mut review);
        review.to_string()
    };
    let deep = "[".repeat(100_000);
    for (body, why) in [
        (String::new(), "request body is empty"),
        ("{".to_owned(), "cannot read the AdmissionReview: EOF while parsing an object"),
        (deep, "cannot read the AdmissionReview: recursion limit exceeded"),
        ("[]".to_owned(), "expected an AdmissionReview of admission.k8s.io/v1, not kind \"\" of"),
        (review(&|r| r["kind"] = json!("Pod")), "not kind \"Pod\" of \"admission.k8s.io/v1\""),
        (review(&|r| r["apiVersion"] = json!("admission.k8s.io/v2")), "of \"admission.k8s.io/v2\""),
        (review(&|r| r["request"] = Value::Null), "the AdmissionReview has no request"),
        (review(&|r| r["request"]["uid"] = json!(1)), "has no uid"),
        (review(&|r| r["request"]["operation"] = json!("PATCH")), "unknown operation \"PATCH\""),
        (review(&|r| r["request"]["object"] = json!([])), "has no object"),
        (review(&|r| r["request"]["oldObject"] = Value::Null), "has no oldObject"),
    ] {
        for path in [COMPOSITIONS, DEFINITIONS] {
            let page = post(&reviews, path, &body).await;
            assert_eq!(page.status, 400, "{why}: {}", page.body);
            let answer: Value = serde_json::from_str(&page.body).unwrap();
            let (response, status) = (&answer["response"], &answer["response"]["status"]);
            assert_eq!((&response["allowed"], &status["code"]), (&json!(false), &json!(400)));
            assert!(status["message"].as_str().unwrap().contains(why), "{why}: {status}");
        }
    }
    let text = Posted {
        path: COMPOSITIONS.into(),
        content_type: "text/plain".into(),
        body: vec![],
        since: Instant::now(),
    };
    let page = answer(Arc::clone(&reviews), text).await;
    assert_eq!(page.status, 400);
    assert!(page.body.contains("contentType=text/plain, expected application/json"));
    assert_eq!(post(&reviews, "/validate-no-usages", "").await.status, 404);
}

fn crd(kind: &str, group: &str) -> Object {
    let plural = format!("{}s", kind.to_lowercase());
    let fields = json!({"type": "object", "properties": {
        "text": {"type": "string"}, "count": {"type": "integer"},
    }});
    object(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Cluster", "names": {"kind": kind, "plural": plural},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "properties": {"spec": fields}},
            }}],
        },
    }))
}

async fn create(server: &Arc<ApiServer>, object: Object) {
    let by = Instant::now() + PATIENCE;
    server.create(object, &Write::by("test"), by).await.unwrap();
}

/// A Composition of one resource whose text is patched to a number.
fn composition(mode: Option<&str>) -> Value {
    let annotations = mode.map_or(
        json!({}),
        |mode| json!({"crossplane.io/composition-schema-aware-validation-mode": mode}),
    );
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
        "metadata": {"name": "c", "annotations": annotations},
        "spec": {
            "compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "XThing"},
            "mode": "Resources",
            "resources": [{
                "name": "a", "base": {"apiVersion": "nop.example.org/v1", "kind": "Thing"},
                "patches": [{"type": "FromCompositeFieldPath", "fromFieldPath": "spec.text",
                    "toFieldPath": "spec.count"}],
            }],
        },
    })
}

const MISSING: &str =
    "CustomResourceDefinition.apiextensions.k8s.io \"Thing.nop.example.org\" not found";
const WRONG: &str = "spec.resources[0].patches[0].transforms: Required value: the fromFieldPath does not have a type compatible with the toFieldPath according to their schemas and no transforms were provided: string != integer";

/// SAV-3: what becomes of missing schemas, of errors, and of what is wrong in any case.
#[tokio::test]
async fn the_mode_decides_what_becomes_of_a_composition() {
    let server = Arc::<ApiServer>::default();
    let reviews = reviews(server.clone(), true);
    create(&server, crd("XThing", "example.org")).await;
    // Neither the group of this one nor the kind of that one is needed.
    create(&server, crd("Thing", "other.nop.example.org")).await;
    create(&server, crd("Other", "nop.example.org")).await;
    let judge = |mode: Option<&str>| {
        let (reviews, composition) = (Arc::clone(&reviews), composition(mode));
        async move { ask(&reviews, COMPOSITIONS, "CREATE", &composition, &Value::Null).await }
    };
    let allowed = |warnings: Value| {
        json!({"uid": "u", "allowed": true, "status": {"metadata": {}, "code": 200},
            "warnings": warnings})
    };
    for mode in [None, Some("warn"), Some("loose")] {
        assert_eq!(judge(mode).await, allowed(json!([MISSING])), "{mode:?}");
    }
    let strict = judge(Some("strict")).await;
    let message = format!("cannot get the needed CRDs: [{MISSING}]");
    assert_eq!(
        strict,
        json!({"uid": "u", "allowed": false, "status": {"metadata": {}, "status": "Failure",
            "message": message, "reason": "Forbidden", "code": 403}})
    );

    create(&server, crd("Thing", "nop.example.org")).await;
    let warning = format!("Composition \"c\" invalid for schema-aware validation: {WRONG}");
    for mode in [None, Some("warn")] {
        assert_eq!(judge(mode).await, allowed(json!([warning])), "{mode:?}");
    }
    for mode in ["loose", "strict"] {
        let status = judge(Some(mode)).await["status"].clone();
        assert_eq!(
            (&status["code"], &status["reason"]),
            (&json!(422), &json!("Invalid")),
            "{mode}"
        );
        let message = format!("Composition.apiextensions.crossplane.io \"c\" is invalid: {WRONG}");
        assert_eq!(status["message"], message);
        let cause = &status["details"]["causes"][0];
        assert_eq!(cause["field"], "spec.resources[0].patches[0].transforms");
        assert_eq!(cause["reason"], "FieldValueRequired");
    }
    let lax = judge(Some("lax")).await;
    let text = "cannot get validation mode: invalid schema-aware composition validation mode: lax";
    assert_eq!((&lax["status"]["code"], &lax["status"]["message"]), (&json!(403), &json!(text)));

    let twice = crd("Thing", "nop.example.org");
    let mut twice = twice.to_value();
    twice["metadata"]["name"] = json!("thinglets.nop.example.org");
    twice["spec"]["names"]["plural"] = json!("thinglets");
    create(&server, object(twice)).await;
    let text = "cannot get the needed CRDs: [Internal error occurred: more than one CRD found for \
        Thing.nop.example.org: [thinglets.nop.example.org things.nop.example.org]]";
    assert_eq!(judge(None).await["status"]["message"], text);
}

/// SAV-1, WH-3 of validation
#[tokio::test]
async fn integrity_is_checked_whatever_the_mode_and_the_flag() {
    let server = Arc::<ApiServer>::default();
    for schemas in [true, false] {
        let reviews = reviews(server.clone(), schemas);
        for mode in [None, Some("warn"), Some("loose"), Some("strict"), Some("lax")] {
            let mut broken = composition(mode);
            broken["spec"]["resources"][0]["patches"][0]["type"] = json!("PatchSet");
            broken["spec"]["resources"][0]["patches"][0]["patchSetName"] = json!("none");
            for operation in ["CREATE", "UPDATE"] {
                let answer = ask(&reviews, COMPOSITIONS, operation, &broken, &json!({})).await;
                assert_eq!(answer["status"]["code"], 422, "{answer}");
            }
            let deleted = ask(&reviews, COMPOSITIONS, "DELETE", &Value::Null, &broken).await;
            assert_eq!(deleted["allowed"], true);
        }
        // Nothing but integrity without the flag.
        let lax = composition(Some("lax"));
        let answer = ask(&reviews, COMPOSITIONS, "CREATE", &lax, &Value::Null).await;
        assert_eq!(answer["allowed"], !schemas);
        assert_eq!(answer.get("warnings"), None);
        let other = json!({"apiVersion": "v1", "kind": "Secret"});
        let answer = ask(&reviews, COMPOSITIONS, "CREATE", &other, &Value::Null).await;
        assert_eq!(answer["status"]["message"], "supplied object was not a Composition");
    }
}

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition",
        "metadata": {"name": "xthings.example.org", "uid": "7d3a4ffc-0000-4000-8000-000000000001"},
        "spec": {
            "group": "example.org", "names": {"kind": "XThing", "plural": "xthings"},
            "versions": [{"name": "v1", "served": true, "referenceable": true, "schema": {
                "openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
                }},
            }}],
        },
    })
}

/// XRDV-1, XRDV-2, XRDV-5, XRDV-6, XRDV-8, XRDV-9
#[tokio::test]
async fn the_crds_of_a_definition_are_tried() {
    let server = Arc::<ApiServer>::default();
    let reviews = reviews(server.clone(), true);
    let judge = |operation: &'static str, new: Value, old: Value| {
        let reviews = Arc::clone(&reviews);
        async move { ask(&reviews, DEFINITIONS, operation, &new, &old).await }
    };
    let fine = definition();
    assert_eq!(judge("CREATE", fine.clone(), Value::Null).await["allowed"], true);
    let id = ObjectId::new(
        Gvk::new("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        "",
        "xthings.example.org",
    );
    let by = Instant::now() + PATIENCE;
    server.get(&id, Source::Live, by).await.expect_err("it was a dry run");

    let without = |path: &str| {
        let mut changed = definition();
        let (parent, key) = path.rsplit_once('/').unwrap();
        changed.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(key);
        changed
    };
    let answer = judge("CREATE", without("/spec/versions/0/schema"), Value::Null).await;
    assert_eq!(
        answer["status"]["message"],
        "cannot get CRDs for CompositeResourceDefinition: cannot get CRD for Composite Resource: \
         cannot generate CRD for \"Composite Resource\" \"xthings.example.org\": custom resource \
         validation cannot be nil"
    );
    let mut claims = definition();
    claims["spec"]["claimNames"] = json!({"kind": "XThing", "plural": "things"});
    let answer = judge("CREATE", claims.clone(), Value::Null).await;
    assert_eq!(
        answer["status"]["message"],
        "cannot get CRDs for CompositeResourceDefinition: cannot get Claim CRD for Composite \
         Claim: invalid resource claim names: \"XThing\" conflicts with composite resource name"
    );
    let mut conversion = definition();
    conversion["spec"]["conversion"] = json!({"strategy": "Webhook"});
    let answer = judge("CREATE", conversion, Value::Null).await;
    let text = "spec.conversion.webhook: Required value: webhook configuration is required when conversion strategy is \"Webhook\"";
    assert_eq!(
        (&answer["status"]["code"], &answer["status"]["message"]),
        (&json!(403), &json!(text))
    );

    // Its CRD exists already.
    create(&server, crd("XThing", "example.org")).await;
    let answer = judge("CREATE", fine.clone(), Value::Null).await;
    assert_eq!(
        (&answer["status"]["code"], &answer["status"]["reason"]),
        (&json!(409), &json!("AlreadyExists"))
    );
    let message = answer["status"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("invalid CRD generated for CompositeResourceDefinition: "),
        "{message}"
    );
    assert_eq!(answer["status"]["details"]["kind"], "CompositeResourceDefinition");
    let before = writes(&server);
    assert_eq!(judge("UPDATE", fine.clone(), fine.clone()).await["allowed"], true);
    // That of a claim that is new does not.
    claims["spec"]["claimNames"]["kind"] = json!("Thing");
    assert_eq!(judge("UPDATE", claims, fine.clone()).await["allowed"], true);
    assert_eq!(writes(&server), before, "nothing is written");
    assert_eq!(judge("DELETE", Value::Null, fine.clone()).await["allowed"], true);

    let mut other = definition();
    other["spec"]["group"] = json!("other.org");
    other["spec"]["names"]["kind"] = json!("Other");
    let answer = judge("UPDATE", other, fine.clone()).await;
    let text = "[spec.group: Invalid value: \"other.org\": field is immutable, spec.names.kind: Invalid value: \"Other\": field is immutable]";
    assert_eq!(
        (&answer["status"]["code"], &answer["status"]["message"]),
        (&json!(403), &json!(text))
    );

    // Its finalizers can be removed, whatever is wrong with it.
    let mut ending = without("/spec/versions/0/schema");
    let answer = judge("UPDATE", ending.clone(), fine.clone()).await;
    assert_eq!(answer["allowed"], false);
    ending["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(judge("UPDATE", ending, fine.clone()).await["allowed"], true);

    let secret = json!({"apiVersion": "v1", "kind": "Secret"});
    let answer = judge("CREATE", secret.clone(), Value::Null).await;
    let text = "supplied object was not a CompositeResourceDefinition";
    assert_eq!(answer["status"]["message"], text);
    let answer = judge("UPDATE", secret, fine).await;
    assert_eq!(answer["status"]["message"], "unexpected type");
}

/// The CRDs that are stored, with their versions.
fn writes(server: &ApiServer) -> Vec<(String, String)> {
    let stored = server.objects().into_iter();
    stored.map(|o| (o.name().to_owned(), o.resource_version().to_owned())).collect()
}
