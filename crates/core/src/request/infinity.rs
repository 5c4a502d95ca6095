//! Numbers that may be infinite, in JSON.

/// A number that may be infinite. JSON has no infinity: p = ∞ is written as the text "inf".
pub(super) mod number_or_inf {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Number {
        Finite(f64),
        Text(String),
    }

    #[allow(clippy::trivially_copy_pass_by_ref)] // the signature serde asks for
    pub fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
        if value.is_finite() { Number::Finite(*value) } else { Number::Text("inf".into()) }
            .serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        match Number::deserialize(from)? {
            Number::Finite(value) => Ok(value),
            Number::Text(text) => {
                text.parse().map_err(|_| D::Error::custom("p must be a number or \"inf\""))
            }
        }
    }
}

/// A number that may be infinite or left out.
pub(super) mod optional_number_or_inf {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Number(#[serde(with = "super::number_or_inf")] f64);

    #[allow(clippy::trivially_copy_pass_by_ref, clippy::ref_option)] // the signature serde asks for
    pub fn serialize<S: Serializer>(value: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
        value.map(Number).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
        Ok(Option::<Number>::deserialize(from)?.map(|n| n.0))
    }
}
