//! Letting messages in while a run goes on.

use std::cell::RefCell;
use std::collections::VecDeque;

use js_sys::{Function, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::MessageChannel;

/// A channel to oneself, with those who wait for a message of their own.
struct Turns {
    channel: MessageChannel,
    /// Kept as long as the channel calls it.
    _called: Closure<dyn FnMut()>,
}

thread_local! {
    static TURNS: RefCell<Option<Turns>> = const { RefCell::new(None) };
    static WAITING: RefCell<VecDeque<Function>> = const { RefCell::new(VecDeque::new()) };
}

impl Turns {
    fn open() -> Result<Turns, JsValue> {
        let channel = MessageChannel::new()?;
        let called = Closure::new(|| {
            if let Some(next) = WAITING.with_borrow_mut(VecDeque::pop_front) {
                // A promise's own function does not fail.
                let _ = next.call0(&JsValue::UNDEFINED);
            }
        });
        channel.port1().set_onmessage(Some(called.as_ref().unchecked_ref()));
        Ok(Turns { channel, _called: called })
    }
}

/// Lets messages in that wait. A message to oneself comes after them; a timer would take 4 ms, since browsers slow timers down that
/// follow each other.
pub(super) async fn let_messages_in() -> Result<(), JsValue> {
    let mut posted: Result<(), JsValue> = Ok(());
    let promise = Promise::new(&mut |resolve, _| {
        posted = TURNS.with_borrow_mut(|turns| {
            let turns = match turns {
                Some(turns) => turns,
                None => turns.insert(Turns::open()?),
            };
            turns.channel.port2().post_message(&JsValue::NULL)?;
            WAITING.with_borrow_mut(|waiting| waiting.push_back(resolve));
            Ok(())
        });
    });
    posted?;
    JsFuture::from(promise).await?;
    Ok(())
}
