//! JSON in which no object has a key twice. RFC 8259 leaves open which of the two counts, so that another
//! reader may see another document under the same signature.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::printable::{cut, escape_name};

/// Any JSON without a key that stands twice.
pub(crate) struct Unique;

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Unique;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Unique, A::Error> {
        let mut keys = BTreeSet::new();
        while let Some(key) = map.next_key::<String>()? {
            map.next_value::<Unique>()?;
            if let Some(twice) = keys.replace(key) {
                return Err(A::Error::custom(format!("`{}` stands there twice", escape_name(&cut(&twice, 80)))));
            }
        }
        Ok(Unique)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Unique, A::Error> {
        while seq.next_element::<Unique>()?.is_some() {}
        Ok(Unique)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_str<E>(self, _: &str) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_unit<E>(self) -> Result<Unique, E> {
        Ok(Unique)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_stands_twice_is_found_at_every_level() {
        let read = |text: &str| serde_json::from_str::<Unique>(text).map(drop).map_err(|error| error.to_string());
        for text in [r#"{"a":1,"b":[{"a":2},{"a":-3.5}],"c":{"a":null,"b":"x"}}"#, "[]", "true", "18446744073709551615"]
        {
            assert_eq!(read(text), Ok(()));
        }
        for text in [r#"{"a":1,"a":1}"#, r#"{"x":[{"a":{},"b":1,"a":2}]}"#, r#"[[{"\u0061":1,"a":2}]]"#] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with("`a` stands there twice at line 1"), "{error}");
        }
        assert!(read("{").is_err());
    }
}
