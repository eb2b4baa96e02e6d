//! Readers of a table while another thread writes to it.

use std::sync::Arc;

use ratelimit_runtime::models::Table;

use crate::support::explore;

/// Both keys have the same place.
const KEYS: [u64; 2] = [1, 2];

#[test]
fn what_is_remembered_is_of_the_version_that_is_asked_for() {
    explore(1, || {
        let table = table_of_first_key();
        let other = loom::thread::spawn({
            let table = Arc::clone(&table);
            move || {
                table.replace(2, &KEYS[1..]);
                table.remember(2, KEYS[1], None, 20);
            }
        });
        let [first, second] =
            [(1, KEYS[0]), (2, KEYS[1])].map(|(version, key)| table.get(version, key, None));
        assert!([None, Some(Some([10; 5]))].contains(&first), "{first:?}");
        assert!([None, Some(Some([20; 5]))].contains(&second), "{second:?}");
        other.join().unwrap();
        assert_eq!(table.get(1, KEYS[0], None), None);
        assert_eq!(table.get(2, KEYS[0], None), Some(None));
        assert_eq!(table.get(2, KEYS[1], None), Some(Some([20; 5])));
    });
}

#[test]
fn key_that_is_removed_is_not_there_in_the_next_version_alone() {
    explore(1, || {
        let table = table_of_first_key();
        let other = loom::thread::spawn({
            let table = Arc::clone(&table);
            move || table.replace(2, &KEYS[1..])
        });
        let [old, new] = [1, 2].map(|version| table.get(version, KEYS[0], None));
        assert!([None, Some(Some([10; 5]))].contains(&old), "{old:?}");
        assert!([None, Some(None)].contains(&new), "{new:?}");
        other.join().unwrap();
    });
}

#[test]
fn what_is_remembered_follows_from_what_it_is_asked_for() {
    explore(1, || {
        let table = Arc::new(Table::default());
        table.replace(1, &KEYS);
        table.remember(1, KEYS[0], Some(1), 10);
        let other = loom::thread::spawn({
            let table = Arc::clone(&table);
            move || table.remember(1, KEYS[0], Some(2), 20)
        });
        let found = table.get(1, KEYS[0], Some(1));
        assert!([None, Some(Some([10; 5]))].contains(&found), "{found:?}");
        other.join().unwrap();
        assert_eq!([1, 2].map(|given| table.get(1, KEYS[0], Some(given))), [None, Some(Some([20; 5]))]);
    });
}

/// Returns a table of the first key, for which a number is remembered.
fn table_of_first_key() -> Arc<Table> {
    let table = Table::default();
    table.replace(1, &KEYS[..1]);
    table.remember(1, KEYS[0], None, 10);
    Arc::new(table)
}
