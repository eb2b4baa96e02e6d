// The first definition of a link wins: these replace the index's own, which point to files of the repository.
//! [README]: crate
//! [Limits in an axum service]: self::axum
//! [Limits in a gRPC service]: self::grpc
//! [MCP tools]: self::mcp
//! [Calls that wait]: self::waiting
//! [Concurrency limits]: self::concurrency
//! [Calling an API]: self::calling
//! [Language models]: self::models
//! [Limits without attributes]: self::limiters
//! [Code that is not async]: self::blocking
//! [Plans and quotas]: self::plans
//! [Changing a limit]: self::changing
//! [Testing]: self::testing
//! [Production checklist]: self::production
//! [Operating]: self::operating
//! [Verifying]: self::verifying
//! [Metrics]: self::metrics
//! [Dashboard]: self::dashboard
//! [Runbook]: self::runbook
//! [Another Redis, and several regions]: self::moving
//! [Coming from other libraries]: self::migrating
//! [Choosing a limit]: self::choosing
//! [Several limits on one function]: self::stacks
//! [Charging by output, and refunds]: self::charging
//! [Outages]: self::outages
//! [Leases and local denials]: self::leases
//! [Memory in process]: self::memory
//! [What a decision costs]: self::performance
//! [Capacity]: self::capacity
//! [Security]: self::security
//! [Attributes]: self::attributes
//! [Names of policies]: self::names
//! [HTTP responses]: self::responses
//! [Redis]: self::redis
//! [Log events]: self::logs
//! [Benchmarks]: self::benchmarks
//! [Over-admission]: self::over_admission
#![doc = include_str!("../guide/README.md")]

// How to.

#[cfg_attr(feature = "axum", doc = include_str!("../guide/axum.md"))]
#[cfg_attr(not(feature = "axum"), doc = "Documented with the feature `axum`.")]
pub mod axum {}
#[cfg_attr(feature = "tonic", doc = include_str!("../guide/grpc.md"))]
#[cfg_attr(not(feature = "tonic"), doc = "Documented with the feature `tonic`.")]
pub mod grpc {}
#[cfg_attr(feature = "axum", doc = include_str!("../guide/mcp.md"))]
#[cfg_attr(not(feature = "axum"), doc = "Documented with the feature `axum`.")]
pub mod mcp {}
#[doc = include_str!("../guide/waiting.md")]
pub mod waiting {}
#[doc = include_str!("../guide/concurrency.md")]
pub mod concurrency {}
#[cfg_attr(feature = "http", doc = include_str!("../guide/calling.md"))]
#[cfg_attr(not(feature = "http"), doc = "Documented with the feature `http`.")]
pub mod calling {}
#[doc = include_str!("../guide/models.md")]
pub mod models {}
#[cfg_attr(feature = "calendar", doc = include_str!("../guide/plans.md"))]
#[cfg_attr(not(feature = "calendar"), doc = "Documented with the feature `calendar`.")]
pub mod plans {}
#[doc = include_str!("../guide/limiters.md")]
pub mod limiters {}
#[doc = include_str!("../guide/blocking.md")]
pub mod blocking {}
#[cfg_attr(feature = "overrides", doc = "[`overrides`]: crate::RegistryBuilder::overrides")]
#[cfg_attr(
    all(feature = "overrides", feature = "redis"),
    doc = "[`overrides_in_redis`]: crate::RegistryBuilder::overrides_in_redis"
)]
#[doc = include_str!("../guide/changing.md")]
pub mod changing {}
#[doc = include_str!("../guide/testing.md")]
pub mod testing {}
#[doc = include_str!("../guide/production.md")]
pub mod production {}
#[doc = include_str!("../guide/operating.md")]
pub mod operating {}
#[doc = include_str!("../guide/verifying.md")]
pub mod verifying {}
#[doc = include_str!("../guide/metrics.md")]
pub mod metrics {}
#[cfg_attr(feature = "dashboard", doc = include_str!("../guide/dashboard.md"))]
#[cfg_attr(not(feature = "dashboard"), doc = "Documented with the feature `dashboard`.")]
pub mod dashboard {}
#[doc = include_str!("../guide/runbook.md")]
pub mod runbook {}
#[doc = include_str!("../guide/moving.md")]
pub mod moving {}
#[doc = include_str!("../guide/migrating.md")]
pub mod migrating {}

// Explanation.

// The pictures. Of two definitions of a link the first counts, and the paths in the guide work only in the repository.
#[doc = include_str!("../guide/pictures/data-uris.md")]
#[doc = include_str!("../guide/choosing.md")]
pub mod choosing {}
#[doc = include_str!("../guide/stacks.md")]
pub mod stacks {}
#[doc = include_str!("../guide/charging.md")]
pub mod charging {}
#[doc = include_str!("../guide/outages.md")]
pub mod outages {}
#[doc = include_str!("../guide/leases.md")]
pub mod leases {}
#[doc = include_str!("../guide/memory.md")]
pub mod memory {}
#[doc = include_str!("../guide/performance.md")]
pub mod performance {}
#[doc = include_str!("../guide/capacity.md")]
pub mod capacity {}
#[doc = include_str!("../guide/security.md")]
pub mod security {}

// Reference.

#[doc = include_str!("../guide/attributes.md")]
pub mod attributes {}
#[doc = include_str!("../guide/names.md")]
pub mod names {}
#[doc = include_str!("../guide/responses.md")]
pub mod responses {}
#[doc = include_str!("../guide/redis.md")]
pub mod redis {}
#[doc = include_str!("../guide/logs.md")]
pub mod logs {}
#[doc = include_str!("../guide/benchmarks.md")]
pub mod benchmarks {}
#[doc = include_str!("../guide/over-admission.md")]
pub mod over_admission {}
