use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use super::{Remembered, SharedTable};
use crate::base::random_numbers::random_numbers;
use crate::key::KeyHasher;

/// As many as may have overrides.
const MOST: usize = 10_000;

/// Taken by tests with large tables, of which a process has a bounded number.
static LARGE: Mutex<()> = Mutex::new(());

fn large() -> MutexGuard<'static, ()> {
    LARGE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn key(i: usize) -> [u64; 2] {
    let mut hasher = KeyHasher::new();
    hasher.text(&i.to_string());
    hasher.finish().words()
}

fn get(table: &SharedTable, version: u64, i: usize) -> Option<Option<Remembered>> {
    remembered(table, version, key(i), None)
}

/// Returns what is remembered for a key, given what it was computed from: `None` if that is not known.
fn remembered(
    table: &SharedTable,
    version: u64,
    key: [u64; 2],
    given: Option<u64>,
) -> Option<Option<Remembered>> {
    match table.find(version, key)? {
        None => Some(None),
        Some(found) => found.remembered_for(given).map(Some),
    }
}

#[test]
fn keys_are_found_and_others_are_not() {
    let _large = large();
    let table = SharedTable::default();
    assert_eq!(get(&table, 1, 0), None);
    for (version, keys) in [(1, 0..1), (2, 0..7), (3, 100..100 + MOST), (4, 0..0), (5, 50..1000)] {
        let list: Vec<_> = keys.clone().map(key).collect();
        table.replace(version, &list);
        for i in keys.clone().step_by(2) {
            table.remember(version, key(i), None, [i as u64; 5]);
        }
        table.remember(version - 1, key(keys.start), None, [0; 5]);
        for i in 0..2 * MOST {
            let expected = match keys.contains(&i) {
                false => Some(None),
                true => ((i - keys.start) % 2 == 0).then_some(Some([i as u64; 5])),
            };
            assert_eq!(get(&table, version, i), expected, "{version} {i}");
            assert_eq!(get(&table, version - 1, i), None);
        }
    }
}

#[test]
fn keys_of_earlier_versions_are_not_found_in_free_places() {
    // The second half has the tag.
    let (table, key) = (SharedTable::default(), [7, 1]);
    table.replace(1, &[[5, 9], key]);
    table.remember(1, key, None, [1; 5]);
    table.replace(2, &[[6, 1]]);
    assert_eq!(remembered(&table, 2, key, None), Some(None));
}

#[test]
fn too_many_keys_are_not_at_hand() {
    let _large = large();
    let table = SharedTable::default();
    let many = 1 << 17;
    let list: Vec<_> = (0..many).map(key).collect();
    table.replace(1, &list);
    assert_eq!(get(&table, 1, many), None);
    table.replace(2, &list[..MOST]);
    assert_eq!(get(&table, 2, many), Some(None));
}

#[test]
fn numbers_are_remembered_for_what_they_follow_from() {
    let table = SharedTable::default();
    table.replace(1, &[key(1)]);
    let get = |given: u64| remembered(&table, 1, key(1), Some(given));
    assert_eq!(get(1), None);
    for given in [1, 2, 1] {
        table.remember(1, key(1), Some([given; 8]), [10 + given; 5]);
        assert_eq!((get(given), get(3 - given)), (Some(Some([10 + given; 5])), None));
    }
    assert_eq!(remembered(&table, 1, key(2), Some(1)), Some(None));
}

/// Threads read while another one replaces the keys and remembers something for them, as random steps say. What they read is what a map
/// holds at some time of their call.
#[test]
fn readers_see_what_a_map_holds_at_some_time() {
    const KEYS: usize = 40;
    const STEPS: u64 = 20_000;
    let _large = large();
    let (table, done) = (SharedTable::default(), AtomicBool::new(false));
    // The keys of each version, and all numbers that were remembered for them.
    let model = Mutex::new(HashMap::<u64, HashMap<usize, Vec<Remembered>>>::new());
    let version = AtomicU64::new(0);
    thread::scope(|scope| {
        for seed in 0..2 {
            let (table, done, model, version) = (&table, &done, &model, &version);
            scope.spawn(move || {
                let (mut random, mut known) = (random_numbers(seed), 0_u64);
                while !done.load(Ordering::Relaxed) {
                    let (asked, i) = (version.load(Ordering::Acquire), random(KEYS as u64) as usize);
                    let given = i as u64 % 3;
                    let Some(found) = remembered(table, asked, key(i), Some(given)) else { continue };
                    known += 1;
                    let model = model.lock().unwrap();
                    let remembered = model[&asked].get(&i);
                    match found {
                        None => assert_eq!(remembered, None, "{asked} {i}"),
                        Some(numbers) => {
                            assert!(remembered.unwrap().contains(&numbers), "{asked} {i} {numbers:?}");
                            assert_eq!(numbers[0], given);
                        }
                    }
                }
                assert!(known > 0);
            });
        }
        let mut random = random_numbers(7);
        for step in 1..=STEPS {
            if step % 50 == 1 {
                let keys: Vec<_> = (0..KEYS).filter(|_| random(3) > 0).collect();
                let none = keys.iter().map(|i| (*i, Vec::new())).collect();
                model.lock().unwrap().insert(step, none);
                table.replace(step, &keys.into_iter().map(key).collect::<Vec<_>>());
                version.store(step, Ordering::Release);
            }
            let (i, given, present) =
                (random(KEYS as u64) as usize, random(3), version.load(Ordering::Relaxed));
            let numbers = [given, step, step, step, step];
            if let Some(remembered) =
                model.lock().unwrap().get_mut(&present).and_then(|keys| keys.get_mut(&i))
            {
                remembered.push(numbers);
            }
            table.remember(present, key(i), Some([given; 8]), numbers);
        }
        // Each reader has found something.
        thread::yield_now();
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn tables_of_a_process_are_bounded() {
    let _large = large();
    let keys: Vec<_> = (0..MOST).map(key).collect();
    let tables: Vec<_> = (0..20).map(|_| SharedTable::default()).collect();
    tables.iter().for_each(|table| table.replace(1, &keys));
    let made = tables.iter().filter(|table| get(table, 1, MOST).is_some()).count();
    assert!((1..=16).contains(&made), "{made}");
    drop(tables);
    let table = SharedTable::default();
    table.replace(1, &keys);
    assert_eq!(get(&table, 1, MOST), Some(None));
}
