#include "codec/api_versions.hpp"

#include "codec/frame.hpp"
#include "codec/walker.hpp"
#include "tests/fuzz/input.hpp"
#include "tests/support/trace.hpp"

namespace fuzz {
namespace {

using codec::Role;

void require_clamped(const Bytes& frame, codec::Version version) {
  const auto rest = Input(frame).subspan(sizeof(codec::ResponseHead));
  const auto seen = support::trace(codec::Walker(codec::api_versions::response, version, rest.size()), rest);
  require(seen.end == codec::Walker::Step::Kind::done, "the answer can be read again");
  const codec::Api* api = nullptr;
  for (const auto& step : seen.steps) {
    if (step.kind != codec::Walker::Step::Kind::field) continue;
    const auto value = codec::load<boost::endian::big_int16_t>(step.value);
    if (step.role == Role::api_key) api = codec::find_api(value);
    if (api == nullptr) continue;
    if (step.role == Role::min_version) require(value >= api->served.first, "no version below ours");
    if (step.role == Role::max_version) require(value <= api->served.last, "no version above ours");
  }
}

}  // namespace

// A clamped answer can be read again, is of the size it says, promises nothing that the proxy cannot read, and stays as
// it is when it is clamped once more.
// Input: the version asked, then the frame without its size.
void api_versions(Input input) {
  const auto version = static_cast<codec::Version>(take_byte(input));
  auto frame = framed(input);
  const auto size = frame.size();
  auto clamped = codec::clamp_api_versions(frame, version);
  if (!clamped) return;
  require(frame.size() == size && has_right_size(frame), "the frame keeps its size");
  auto& out = clamped->frame.empty() ? frame : clamped->frame;
  require(has_right_size(out), "the answer is of the size it says");
  require_clamped(out, clamped->error_code == codec::error_unsupported_version ? codec::Version{0} : version);
  const auto before = out;
  const auto again = codec::clamp_api_versions(out, version);
  require(again.has_value() && again->frame.empty() && out == before, "clamping twice is clamping once");
}

}  // namespace fuzz
