#include "failures.h"

#include <fmt/format.h>

#include "pif/base/say.h"

namespace pif::cli {
namespace {

constexpr std::size_t kErrorsKept = 1000;

}  // namespace

void Failures::add(const Error& error) {
  say(fmt::format("pif: {}\n", program_.told(error)));
  if (errors_.size() < kErrorsKept) errors_.push_back(error);
  ++count_;
}

void Failures::sum_up() const {
  if (count_ > 1) say(fmt::format("pif: {} things failed, as said above; the rest is done\n", count_));
}

void Failures::add_to(Json& document) const {
  if (errors_.empty()) return;
  document["error"] = json_of(errors_.front());
  for (const Error& error : errors_) document["errors"].push_back(json_of(error));
}

std::string Failures::members() const {
  Json document = Json::object();
  add_to(document);
  const std::string text = document.dump(-1, ' ', false, Json::error_handler_t::replace);
  return errors_.empty() ? "" : "," + text.substr(1, text.size() - 2);
}

bool ends_all(const Error& error) {
  const bool no_answer = error.code == Code::kUnavailable || error.code == Code::kTimeout;
  const bool of_server = error.node.empty() || error.node == "server";
  return error.code == Code::kCancelled || error.code == Code::kNoSpace || (no_answer && of_server);
}

Json json_of(const Error& error) { return {{"code", code_name(error.code)}, {"text", error.text}, {"node", error.node}}; }

}  // namespace pif::cli
