//! The search for a GPU adapter in a browser: asked through `navigator.gpu`, so that every way of not having WebGPU can be told
//! apart.

use js_sys::{Function, Promise, Reflect};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

use crate::device::{Adapter, DeviceReason};

/// The adapter that the browser offers, or why it offers none, with the browser's own words.
pub(super) async fn browser_adapter() -> Result<Adapter, (DeviceReason, String)> {
    let global = js_sys::global();
    let gpu = get(&get(&global, "navigator"), "gpu");
    if !gpu.is_object() {
        let secure = get(&global, "isSecureContext").as_bool().unwrap_or(true);
        let reason = if secure { DeviceReason::NoWebgpu } else { DeviceReason::InsecurePage };
        return Err((reason, String::new()));
    }
    let adapter = request(&gpu).await.map_err(|error| (DeviceReason::NoAdapter, words(&error)))?;
    if !adapter.is_object() {
        return Err((DeviceReason::NoAdapter, String::new()));
    }
    let info = get(&adapter, "info");
    let field = |name: &str| get(&info, name).as_string().unwrap_or_default();
    let fallback = [&info, &adapter].iter().any(|object| get(object, "isFallbackAdapter").as_bool() == Some(true));
    let (vendor, architecture) = (field("vendor"), field("architecture"));
    let name = [field("description"), field("device"), [vendor.as_str(), &architecture].join(" ")]
        .into_iter()
        .map(|name| name.trim().to_string())
        .find(|name| !name.is_empty())
        .unwrap_or_else(|| "WebGPU".to_string());
    Ok(Adapter::new(name, &[&vendor, &architecture], fallback))
}

async fn request(gpu: &JsValue) -> Result<JsValue, JsValue> {
    let options = js_sys::Object::new();
    Reflect::set(&options, &"powerPreference".into(), &"high-performance".into())?;
    let request: Function = get(gpu, "requestAdapter").dyn_into()?;
    let promise: Promise = request.call1(gpu, &options)?.dyn_into()?;
    JsFuture::from(promise).await
}

fn get(object: &JsValue, name: &str) -> JsValue {
    Reflect::get(object, &name.into()).unwrap_or(JsValue::UNDEFINED)
}

fn words(error: &JsValue) -> String {
    get(error, "message").as_string().unwrap_or_else(|| format!("{error:?}"))
}
