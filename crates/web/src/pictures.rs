//! Pictures made of words: one request to the service of a model, in the forms that the services document.

use std::time::Duration;

use myclaw_llm::outside::visible;
use reqwest::header::ACCEPT;
use reqwest::{Client, RequestBuilder, StatusCode};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use url::Url;

use crate::DownloadOptions;
use crate::download::{ServiceClient, read_answer};

/// Longest answer that is read, in bytes: a picture of 20 MB, and room for the rest.
const MAX_ANSWER_BYTES: usize = 32 << 20;
/// Most characters of a service's error that are shown.
const MAX_ERROR_CHARS: usize = 300;
/// What stands before the data in an address that holds a picture.
const DATA: &str = ";base64,";

/// The interface of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PictureForm {
    /// `images/generations`, of OpenAI and servers that copy it;
    /// <https://platform.openai.com/docs/api-reference/images/create>.
    Images,
    /// `generateContent` of Google's Generative Language API; <https://ai.google.dev/gemini-api/docs/image-generation>.
    Google,
    /// `chat/completions` with pictures among the answer, of OpenRouter;
    /// <https://openrouter.ai/docs/features/multimodal/image-generation>.
    Chat,
}

/// The shape of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PictureShape {
    /// As wide as high.
    Square,
    /// Wider than high.
    Landscape,
    /// Higher than wide.
    Portrait,
}

/// Where pictures are made.
#[derive(Debug)]
pub struct PictureService {
    /// Its interface.
    pub form: PictureForm,
    /// Its address, without the path of the interface.
    pub base_url: Url,
    /// The name of the model there.
    pub model: String,
    /// Its key.
    pub api_key: Option<SecretString>,
}

/// A picture, and what it took.
#[derive(Debug, Clone, PartialEq)]
pub struct MadePicture {
    /// The file in base64.
    pub data: String,
    /// Tokens of the words.
    pub input_tokens: u64,
    /// Tokens of the picture.
    pub output_tokens: u64,
    /// US dollars, if the service says so.
    pub cost: Option<f64>,
}

/// Why there is no picture.
#[derive(Debug, PartialEq, Eq)]
pub struct NoPicture {
    /// For the model.
    pub why: String,
    /// Whether another key might be taken: this one was refused, or its credit or rate is used up.
    pub is_about_key: bool,
}

impl PictureShape {
    fn ratio(self) -> &'static str {
        match self {
            Self::Square => "1:1",
            Self::Landscape => "3:2",
            Self::Portrait => "2:3",
        }
    }

    /// For `images/generations`; DALL-E has sizes of its own.
    fn size(self, is_dall_e: bool) -> &'static str {
        match (self, is_dall_e) {
            (Self::Square, _) => "1024x1024",
            (Self::Landscape, false) => "1536x1024",
            (Self::Portrait, false) => "1024x1536",
            (Self::Landscape, true) => "1792x1024",
            (Self::Portrait, true) => "1024x1792",
        }
    }
}

impl PictureService {
    /// Makes a picture of `prompt`, within `limit`.
    ///
    /// # Errors
    /// There is no picture.
    pub async fn make(
        &self,
        prompt: &str,
        shape: Option<PictureShape>,
        options: DownloadOptions,
        limit: Duration,
    ) -> Result<MadePicture, NoPicture> {
        let failed = |why: String| NoPicture { why: self.without_key(&why), is_about_key: false };
        let url = self.url().ok_or_else(|| failed("its address cannot be used".to_owned()))?;
        let client = ServiceClient::new(options);
        let asking = async {
            let client = client.client_for(&url).await?;
            let request = self.request(&client, url.clone(), prompt, shape);
            read_answer(request, url.clone(), MAX_ANSWER_BYTES).await
        };
        let answer = tokio::time::timeout(limit, asking).await;
        let answer =
            answer.map_err(|_| failed(format!("it took longer than {} s", limit.as_secs())))?;
        let answer = answer.map_err(|error| failed(error.to_string()))?;
        if answer.is_cut {
            return Err(failed("its answer is too large".to_owned()));
        }
        let value: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        if !answer.status.is_success() {
            let is_about_key = matches!(answer.status.as_u16(), 401..=403 | 429);
            return Err(NoPicture { is_about_key, ..failed(refusal(answer.status, &value)) });
        }
        self.read(&value).ok_or_else(|| failed(no_picture(&value)))
    }

    fn url(&self) -> Option<Url> {
        let path = match self.form {
            PictureForm::Images => "images/generations".to_owned(),
            PictureForm::Google => {
                format!("models/{}:generateContent", self.model.trim_start_matches("models/"))
            }
            PictureForm::Chat => "chat/completions".to_owned(),
        };
        let mut url = self.base_url.clone();
        let base = url.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("{base}/{path}"));
        matches!(url.scheme(), "http" | "https").then_some(url)
    }

    fn request(
        &self,
        client: &Client,
        url: Url,
        prompt: &str,
        shape: Option<PictureShape>,
    ) -> RequestBuilder {
        let body = match self.form {
            PictureForm::Images => {
                let is_dall_e = self.model.starts_with("dall-e");
                let mut body = json!({"model": self.model, "prompt": prompt, "n": 1});
                if let Some(shape) = shape {
                    body["size"] = json!(shape.size(is_dall_e));
                }
                if is_dall_e {
                    // The other models answer so anyway, and refuse the field.
                    body["response_format"] = json!("b64_json");
                }
                body
            }
            PictureForm::Google => {
                let mut config = json!({"responseModalities": ["TEXT", "IMAGE"]});
                if let Some(shape) = shape {
                    config["imageConfig"] = json!({"aspectRatio": shape.ratio()});
                }
                json!({"contents": [{"role": "user", "parts": [{"text": prompt}]}], "generationConfig": config})
            }
            PictureForm::Chat => {
                let mut body = json!({
                    "model": self.model,
                    "messages": [{"role": "user", "content": prompt}],
                    "modalities": ["image", "text"],
                    "stream": false,
                    "usage": {"include": true},
                });
                if let Some(shape) = shape {
                    body["image_config"] = json!({"aspect_ratio": shape.ratio()});
                }
                body
            }
        };
        let request = client.post(url).header(ACCEPT, "application/json");
        let request = request.header("content-type", "application/json").body(body.to_string());
        match (&self.api_key, self.form) {
            (None, _) => request,
            (Some(key), PictureForm::Google) => {
                request.header("x-goog-api-key", key.expose_secret())
            }
            (Some(key), _) => request.bearer_auth(key.expose_secret()),
        }
    }

    fn read(&self, value: &Value) -> Option<MadePicture> {
        let count = |value: &Value| value.as_u64().unwrap_or_default();
        let (data, usage, [input, output]) = match self.form {
            PictureForm::Images => {
                let data = value["data"][0]["b64_json"].as_str()?;
                (data, &value["usage"], ["input_tokens", "output_tokens"])
            }
            PictureForm::Google => {
                let parts = value["candidates"][0]["content"]["parts"].as_array()?;
                let data = parts.iter().find_map(|part| part["inlineData"]["data"].as_str())?;
                (data, &value["usageMetadata"], ["promptTokenCount", "candidatesTokenCount"])
            }
            PictureForm::Chat => {
                let url =
                    value["choices"][0]["message"]["images"][0]["image_url"]["url"].as_str()?;
                let (_, data) = url.strip_prefix("data:")?.split_once(DATA)?;
                (data, &value["usage"], ["prompt_tokens", "completion_tokens"])
            }
        };
        Some(MadePicture {
            data: data.to_owned(),
            input_tokens: count(&usage[input]),
            output_tokens: count(&usage[output]),
            cost: usage["cost"].as_f64().filter(|cost| cost.is_finite() && *cost >= 0.0),
        })
    }

    /// A service may repeat the key in what it says.
    fn without_key(&self, text: &str) -> String {
        let key = self.api_key.as_ref().map(|key| key.expose_secret().trim()).unwrap_or_default();
        if key.is_empty() { text.to_owned() } else { text.replace(key, "***") }
    }
}

/// The words of a service, in one line.
fn shown(said: Option<&str>) -> String {
    let said: String = visible(said.unwrap_or_default()).chars().take(MAX_ERROR_CHARS).collect();
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn refusal(status: StatusCode, value: &Value) -> String {
    let said = value["error"]["message"].as_str().or(value["error"].as_str());
    let said = shown(said);
    if said.is_empty() {
        format!("it answered {status}")
    } else {
        format!("it answered {status}: {said}")
    }
}

/// What is said in the place of a picture: a reason of the service, or words of the model.
fn no_picture(value: &Value) -> String {
    let candidate = &value["candidates"][0];
    let words = [
        &value["promptFeedback"]["blockReason"],
        &candidate["finishMessage"],
        &candidate["content"]["parts"][0]["text"],
        &value["choices"][0]["message"]["content"],
    ];
    let words =
        words.into_iter().find_map(|words| words.as_str().filter(|words| !words.is_empty()));
    let said = shown(words);
    if said.is_empty() {
        "its answer has no picture".to_owned()
    } else {
        format!("its answer has no picture but says: {said}")
    }
}
