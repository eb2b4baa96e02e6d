//! The tools, their limits, and what a model reads when it is refused.

use axum::http::request::Parts;
use ratelimits::{RequestContext, count_limit, rate_limit};
use rmcp::handler::server::tool::{IntoCallToolResult, ToolCallContext};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock};
use rmcp::{ErrorData, RoleServer, ServerHandler, schemars, tool, tool_handler, tool_router};
use serde::Deserialize;
use serde_json::json;

pub(crate) struct Articles;

#[derive(Deserialize, schemars::JsonSchema)]
struct Query {
    words: String,
}

#[tool_router]
impl Articles {
    /// Finds articles that contain all the words.
    #[rate_limit("20/min", burst = 3, name = "search", key_type = USER)]
    #[count_limit(1000, "1d", name = "searches a day", key_type = USER)]
    #[tool]
    async fn search(&self, Parameters(Query { words }): Parameters<Query>) -> Result<String, ToolError> {
        Ok(format!("There is one about {words}."))
    }
}

/// What a model reads if a call fails.
struct ToolError {
    text: String,
    /// In how many seconds the same call would go ahead.
    retry_after: Option<u64>,
}

impl From<ratelimits::Error> for ToolError {
    fn from(error: ratelimits::Error) -> Self {
        let retry_after = error.retry_after().map(|wait| wait.as_secs_f64().ceil() as u64);
        let text = match retry_after {
            Some(seconds) => format!("Too many calls. Call again in {seconds} seconds."),
            None if error.is_unsatisfiable() => "This call can never go ahead. Do not repeat it.".into(),
            None => "The tool is not available now. Try again later.".into(),
        };
        ToolError { text, retry_after }
    }
}

impl IntoCallToolResult for ToolError {
    fn into_call_tool_result(self) -> Result<CallToolResponse, ErrorData> {
        let mut result = CallToolResult::error(vec![ContentBlock::text(self.text)]);
        result.structured_content = self.retry_after.map(|seconds| json!({ "retry_after": seconds }));
        Ok(result.into())
    }
}

#[tool_handler]
impl ServerHandler for Articles {
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: rmcp::service::RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = match context.extensions.get::<Parts>() {
            // What `authenticate` has found out.
            Some(parts) => parts.extensions.get().cloned().unwrap_or_default(),
            // Over stdio there is one user.
            None => RequestContext::new().with_user("local"),
        };
        let call = ToolCallContext::new(self, request, context);
        caller.scope(Self::tool_router().call(call)).await
    }
}
