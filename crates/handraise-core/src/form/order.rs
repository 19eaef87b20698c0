//! D1: the total order over property keys, and what is put in it.

use std::cmp::Ordering;

use super::profile::Order;

/// Compares two property keys in D1 order (form.md, "Order").
///
/// The maximal trailing run of digits is a number of any length; the rest is a prefix that compares bytewise. Of
/// equal prefixes a key with a number comes first, numbers compare by value, and the full key breaks the tie.
pub fn compare_keys(a: &str, b: &str) -> Ordering {
    let (prefix_a, number_a) = split(a);
    let (prefix_b, number_b) = split(b);
    prefix_a
        .cmp(prefix_b)
        .then_with(|| match (number_a.is_empty(), number_b.is_empty()) {
            (false, true) => Ordering::Less,
            (true, false) => Ordering::Greater,
            _ => compare_numbers(number_a, number_b),
        })
        .then_with(|| a.as_bytes().cmp(b.as_bytes()))
}

/// Puts questions in presentation order; `key` says what identifies one.
pub(super) fn arrange<T>(questions: &mut [T], order: Order, key: impl Fn(&T) -> &str) {
    let sorts = match order {
        Order::Declared => false,
        Order::Sorted => true,
        Order::Series => is_series(questions.iter().map(&key)),
    };
    if sorts {
        questions.sort_by(|a, b| compare_keys(key(a), key(b)));
    }
}

/// Whether the keys are one numbered series: one prefix, and every key with a trailing number.
fn is_series<'a>(mut keys: impl Iterator<Item = &'a str>) -> bool {
    let Some(first) = keys.next() else { return false };
    let (prefix, number) = split(first);
    !number.is_empty()
        && keys.all(|key| {
            let (other, number) = split(key);
            other == prefix && !number.is_empty()
        })
}

/// The key without its trailing digits, and those digits.
fn split(key: &str) -> (&[u8], &[u8]) {
    let bytes = key.as_bytes();
    let digits = bytes.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    bytes.split_at(bytes.len() - digits)
}

fn compare_numbers(a: &[u8], b: &[u8]) -> Ordering {
    let (a, b) = (significant(a), significant(b));
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

fn significant(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    &digits[zeros..]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn d1_reads_the_maximal_trailing_run_of_digits() {
        assert_eq!(split("question_10"), (&b"question_"[..], &b"10"[..]));
        assert_eq!(split("step1_field2"), (&b"step1_field"[..], &b"2"[..]));
        assert_eq!(split("100_items"), (&b"100_items"[..], &b""[..]));
        assert_eq!(split("42"), (&b""[..], &b"42"[..]));
        assert_eq!(split("apiKey"), (&b"apiKey"[..], &b""[..]));
        assert_eq!(split("käse٣"), ("käse٣".as_bytes(), &b""[..]), "only ASCII digits are digits");
    }

    #[test]
    fn d1_puts_question_2_before_question_10_and_numbers_before_none() {
        let mut keys = ["b", "question_10", "question_", "question_2", "a9", "42", "7", "100_items"];
        keys.sort_by(|a, b| compare_keys(a, b));
        assert_eq!(keys, ["7", "42", "100_items", "a9", "b", "question_2", "question_10", "question_"]);
    }

    #[test]
    fn d1_compares_numbers_of_any_length_by_value_then_by_key() {
        let huge = format!("q{}", "9".repeat(400));
        let huger = format!("q1{}", "0".repeat(400));
        assert_eq!(compare_keys(&huge, &huger), Ordering::Less);
        assert_eq!(compare_keys("q007", "q7"), Ordering::Less, "equal values: the full key decides");
        assert_eq!(compare_keys("q007", "q8"), Ordering::Less);
        assert_eq!(compare_keys("q7", "q007"), Ordering::Greater);
    }

    #[test]
    fn only_one_series_is_put_in_d1_order() {
        let arranged = |keys: &[&'static str], order| {
            let mut keys = keys.to_vec();
            arrange(&mut keys, order, |key| *key);
            keys
        };
        assert_eq!(arranged(&["q_10", "q_2"], Order::Series), ["q_2", "q_10"]);
        assert_eq!(arranged(&["q_10", "q_2", "name"], Order::Series), ["q_10", "q_2", "name"]);
        assert_eq!(arranged(&["q_10", "p_2"], Order::Series), ["q_10", "p_2"]);
        assert_eq!(arranged(&["q_10", "q_2"], Order::Declared), ["q_10", "q_2"]);
        assert_eq!(arranged(&["q_10", "name", "q_2"], Order::Sorted), ["name", "q_2", "q_10"]);
    }

    fn key() -> impl Strategy<Value = String> {
        prop_oneof!["[a-c_]{0,2}[0-9]{0,3}", "[ab]0{0,2}[0-9]{0,2}", any::<String>()]
    }

    proptest! {
        #[test]
        fn d1_is_a_total_order(a in key(), b in key(), c in key()) {
            prop_assert_eq!(compare_keys(&a, &b), compare_keys(&b, &a).reverse());
            prop_assert_eq!(compare_keys(&a, &b) == Ordering::Equal, a == b);
            let mut three = [a, b, c];
            three.sort_by(|x, y| compare_keys(x, y));
            prop_assert_ne!(compare_keys(&three[0], &three[1]), Ordering::Greater);
            prop_assert_ne!(compare_keys(&three[1], &three[2]), Ordering::Greater);
            prop_assert_ne!(compare_keys(&three[0], &three[2]), Ordering::Greater);
        }

        #[test]
        fn d1_agrees_with_numeric_value(prefix in "[a-z_]{0,4}", a in any::<u64>(), b in any::<u64>(), zeros in 0usize..4) {
            let left = format!("{prefix}{}{a}", "0".repeat(zeros));
            let right = format!("{prefix}{b}");
            let by_value = a.cmp(&b);
            if by_value != Ordering::Equal {
                prop_assert_eq!(compare_keys(&left, &right), by_value);
            }
        }
    }
}
