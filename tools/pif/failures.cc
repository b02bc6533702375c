#include "failures.h"

#include <fmt/format.h>

#include "pif/base/say.h"

namespace pif::cli {

void Failures::add(const Error& error) {
  say(fmt::format("pif: {}\n", one_line(error.to_string())));
  errors_.push_back(error);
}

void Failures::sum_up(const std::string& of_what) const {
  if (errors_.size() > 1) say(fmt::format("pif: {} {} failed, as said above\n", errors_.size(), of_what));
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

Json json_of(const Error& error) { return {{"code", code_name(error.code)}, {"text", error.text}, {"node", error.node}}; }

}  // namespace pif::cli
