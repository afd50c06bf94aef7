// SPDX-License-Identifier: Apache-2.0
#include "sinks/common/chat/render.hpp"

#include "base/escape.hpp"
#include "sinks/common/chat/format.hpp"

namespace driftd::sinks {
namespace {

ChatDialect dialect_of(ChatFormat format) {
  if (format == ChatFormat::slack) return slack_dialect();
  if (format == ChatFormat::teams) return teams_dialect();
  return generic_dialect();
}

struct Attempt {
  std::string json, excess;
  bool whole = true;  ///< no list was cut
};

class Rendering {
 public:
  Rendering(const ChatSettings& settings, const ChatMessage& message)
      : layout_(settings.layout),
        message_(message),
        dialect_(dialect_of(settings.format)) {}

  /// Returns the message with as many drifts as fit.
  Attempt most() {
    Attempt best = with(message_.drifts.size());
    if (fits(best)) return best;
    std::size_t low = 0, high = message_.drifts.size();  // `low` drifts may fit, `high` do not
    best = with(0);
    while (high - low > 1) {
      const std::size_t middle = low + (high - low) / 2;
      Attempt tried = with(middle);
      if (!fits(tried)) {
        high = middle;
        continue;
      }
      low = middle;
      best = std::move(tried);
    }
    return best;
  }

 private:
  static bool fits(const Attempt& attempt) { return attempt.whole && attempt.excess.empty(); }
  Attempt with(std::size_t listed) {
    core::Value body = fill(layout_, message_, listed, dialect_.rules);
    Attempt out;
    out.whole = dialect_.cut(body);
    out.json = core::render(body);
    out.excess = dialect_.excess(body, out.json);
    return out;
  }

  const ChatNode& layout_;
  const ChatMessage& message_;
  const ChatDialect dialect_;
};

/// Returns the message with its long texts cut, so that it fits into whatever a template has room for.
ChatMessage shortened(ChatMessage message, std::size_t bytes) {
  const auto cut = [bytes](std::string& text) {
    if (text.size() > bytes) text = std::string(front(text, bytes)) + "…";
  };
  cut(message.text);
  cut(message.remark);
  for (auto& drift : message.drifts) cut(drift.message);
  return message;
}

}  // namespace

Result<std::string> render_chat(const ChatSettings& settings, const ChatMessage& message) {
  // No chat shows more of a text, and the attempts below would cost time for what is cut anyway.
  const ChatMessage bounded = settings.format == ChatFormat::generic ? message : shortened(message, 4'000);
  Attempt best = Rendering(settings, bounded).most();
  for (const std::size_t bytes : {1'000, 200, 0}) {
    if (best.excess.empty()) return std::move(best.json);
    const ChatMessage less = shortened(bounded, bytes);
    best = Rendering(settings, less).most();
  }
  if (best.excess.empty()) return std::move(best.json);
  return fail(Code::invalid, "the template leaves no room for a message: " + best.excess);
}

Status check_room(const ChatSettings& settings) {
  if (settings.format == ChatFormat::none) return {};
  ChatMessage small;
  small.title = std::string(140, 'x');
  DRIFTD_TRY([[maybe_unused]] const std::string body, render_chat(settings, small));
  return {};
}

}  // namespace driftd::sinks
