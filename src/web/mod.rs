//! The border to the browser: the only module that knows `wasm-bindgen`.
//!
//! Three modules are built from this crate: `page`, without tensors, answers the page's main thread and says which device there is;
//! an engine trains in a worker, `gpu` on WebGPU, `cpu` on the CPU with other workers' help.

pub mod frozen;
pub mod lines;
pub mod protocol;

#[cfg(all(target_arch = "wasm32", not(feature = "engine")))]
mod adapter;
#[cfg(all(target_arch = "wasm32", feature = "engine"))]
mod bench;
#[cfg(all(target_arch = "wasm32", feature = "engine"))]
mod engine;
#[cfg(all(target_arch = "wasm32", feature = "engine"))]
mod keeper;
#[cfg(all(target_arch = "wasm32", not(feature = "engine")))]
mod page;
#[cfg(all(target_arch = "wasm32", feature = "cpu"))]
mod pool;
#[cfg(all(target_arch = "wasm32", feature = "engine"))]
mod room;
#[cfg(all(target_arch = "wasm32", feature = "engine"))]
mod turn;

/// A value for JavaScript: plain objects, numbers and arrays; `None` becomes `null`.
#[cfg(target_arch = "wasm32")]
fn to_js<T: serde::Serialize + ?Sized>(value: &T) -> Result<wasm_bindgen::JsValue, wasm_bindgen::JsValue> {
    let serializer = serde_wasm_bindgen::Serializer::new().serialize_maps_as_objects(true).serialize_missing_as_null(true);
    value.serialize(&serializer).map_err(|error| wasm_bindgen::JsValue::from_str(&error.to_string()))
}

/// A value from JavaScript.
#[cfg(target_arch = "wasm32")]
fn from_js<T: serde::de::DeserializeOwned>(value: wasm_bindgen::JsValue) -> Result<T, wasm_bindgen::JsValue> {
    serde_wasm_bindgen::from_value(value).map_err(|error| wasm_bindgen::JsValue::from_str(&error.to_string()))
}
