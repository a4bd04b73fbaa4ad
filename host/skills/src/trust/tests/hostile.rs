//! Hostile tables: only a sound record is trusted.

use serde_json::{Value, json};
use store::{Batch, Table};

use super::*;
use crate::trust::record;

fn key_of(subject: &Subject) -> Vec<u8> {
    record::key(&subject.name, &subject.place, subject.hash).unwrap()
}

/// The stored value of an approved skill.
async fn stored(store: &Store, book: &TrustBook) -> Value {
    book.approve(&subject("1"), policy(), consent()).await.unwrap();
    store.get(Table::Skills, key_of(&subject("1"))).unwrap().unwrap()
}

/// Writes behind the back of open books; books opened later see it.
async fn put(store: &Store, key: Vec<u8>, value: &Value) {
    let mut batch = Batch::new();
    batch.put(Table::Skills, key, value).unwrap();
    store.commit(batch).await.unwrap();
}

#[tokio::test]
async fn a_record_that_was_tampered_with_is_no_trust() {
    type Change = fn(&mut Value);
    let hostile: [(&str, Change); 15] = [
        ("it cannot be read", |value| *value = json!(7)),
        ("it cannot be read", |value| *value = json!({})),
        ("it cannot be read", |value| value["record"]["status"] = json!("trusted")),
        ("it cannot be read", |value| value["record"]["policy"]["everything"] = json!(true)),
        ("it cannot be read", |value| value["record"]["hash"] = json!("sha256:12")),
        ("it cannot be read", |value| value["record"]["consent"]["door"] = json!("window")),
        ("it has version 0", |value| value["version"] = json!(0)),
        ("it has version 2", |value| *value = json!({ "version": 2, "record": { "other": "shape" } })),
        ("it is about something else", |value| value["record"]["name"] = json!("docx")),
        ("it is about something else", |value| value["record"]["place"]["entry"] = json!("pdf.zip")),
        ("it is about something else", |value| value["record"]["place"]["root"] = json!("/srv")),
        ("it is about something else", |value| value["record"]["hash"] = json!(ContentHash::of(b"2"))),
        ("it claims an approval that nobody gave", |value| value["record"]["consent"] = json!(null)),
        ("it claims an approval that nobody gave", |value| value["record"]["consent"]["door"] = json!("model")),
        ("it claims an approval that nobody gave", |value| value["record"]["policy"] = json!(null)),
    ];
    for (expected, change) in hostile {
        let (store, book) = opened();
        let mut value = stored(&store, &book).await;
        change(&mut value);
        put(&store, key_of(&subject("1")), &value).await;
        let book = super::book(&store);
        let bystander = Subject { place: place("other"), ..subject("1") };
        book.approve(&bystander, policy(), consent()).await.unwrap();

        assert_eq!(status(&book, &subject("1")), SkillStatus::NeedsReapproval, "{value}");
        assert!(reason(&book, &subject("1")).contains(expected), "{}", reason(&book, &subject("1")));
        assert_eq!(status(&book, &bystander), SkillStatus::Approved, "others are not touched by it");
        assert!(book.approved(&bystander.name, &place("pdf")).unwrap().is_none());

        // A review and an approval mend it, and none of its content is kept.
        let record = book.reviewed(&subject("1"), None).await.unwrap();
        assert_eq!((record.status, record.policy), (SkillStatus::Reviewed, None));
        book.approve(&subject("1"), policy(), consent()).await.unwrap();
        assert_eq!(status(&book, &subject("1")), SkillStatus::Approved);
    }
}

#[tokio::test]
async fn the_record_as_it_was_stored_is_trust() {
    let (store, book) = opened();
    let mut value = stored(&store, &book).await;
    put(&store, key_of(&subject("1")), &value).await;
    assert_eq!(status(&super::book(&store), &subject("1")), SkillStatus::Approved);
    // Fields that a later schema adds to a record are ignored.
    value["record"]["note"] = json!("x");
    put(&store, key_of(&subject("1")), &value).await;
    assert_eq!(status(&super::book(&store), &subject("1")), SkillStatus::Approved);
    value["record"]["superseded"] = json!(true);
    put(&store, key_of(&subject("1")), &value).await;
    assert_eq!(status(&super::book(&store), &subject("1")), SkillStatus::NeedsReapproval);
}

#[tokio::test]
async fn a_record_moved_to_another_key_is_no_trust() {
    let (store, book) = opened();
    let value = stored(&store, &book).await;
    for other in [
        subject("2"),
        Subject { place: place("pdf2"), ..subject("1") },
        Subject { name: SkillName::parse("docx").unwrap(), ..subject("1") },
    ] {
        put(&store, key_of(&other), &value).await;
        assert_eq!(status(&super::book(&store), &other), SkillStatus::NeedsReapproval);
    }
    assert_eq!(status(&book, &subject("1")), SkillStatus::Approved);
}

#[tokio::test]
async fn what_cannot_be_read_goes_when_its_place_is_taken() {
    let (store, book) = opened();
    let value = stored(&store, &book).await;
    put(&store, key_of(&subject("1")), &json!({ "version": 2, "record": value["record"] })).await;
    book.approve(&subject("2"), policy(), consent()).await.unwrap();
    assert_eq!(store.get::<Value>(Table::Skills, &key_of(&subject("1"))).unwrap(), None);
    assert_eq!(status(&book, &subject("2")), SkillStatus::Approved);
}

#[tokio::test]
async fn a_superseded_record_stays_as_it_was_stored_when_its_place_is_taken_again() {
    let (store, book) = opened();
    let mut value = stored(&store, &book).await;
    value["record"]["superseded"] = json!(true);
    // A field of a later schema, which writing the record again would drop.
    value["record"]["note"] = json!("x");
    put(&store, key_of(&subject("1")), &value).await;
    book.approve(&subject("2"), policy(), consent()).await.unwrap();
    assert_eq!(store.get::<Value>(Table::Skills, key_of(&subject("1"))).unwrap(), Some(value));
}

#[tokio::test]
async fn places_with_strange_names_are_kept_apart_or_refused() {
    let (_, book) = opened();
    let at = |root: &str, entry: &str| Subject {
        place: SkillPlace { root: root.to_owned(), entry: entry.to_owned() },
        ..subject("1")
    };
    for (strange, alike) in
        [(at("a", "b/c"), at("a/b", "c")), (at("a\n", "b"), at("a", "\nb")), (at("", "é"), at("é", ""))]
    {
        book.approve(&strange, policy(), consent()).await.unwrap();
        assert_eq!(
            (status(&book, &strange), status(&book, &alike)),
            (SkillStatus::Approved, SkillStatus::NeedsReapproval)
        );
    }
    for longest in [at("a", &"b".repeat(255)), at(&"a".repeat(4_096), "b")] {
        book.approve(&longest, policy(), consent()).await.unwrap();
        assert_eq!(status(&book, &longest), SkillStatus::Approved);
    }
    for refused in [at("a\0b", "c"), at("a", "b\0c"), at("a", &"b".repeat(256)), at(&"a".repeat(4_097), "b")] {
        assert!(book.approve(&refused, policy(), consent()).await.is_err());
        assert!(book.used(&refused.name, &refused.place, Timestamp::from_millis(1)).await.is_err());
        assert_eq!(status(&book, &refused), SkillStatus::NeedsReapproval);
        assert_eq!(book.last_used(&refused.name, &refused.place), None);
    }
}
