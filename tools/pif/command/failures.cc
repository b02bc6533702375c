#include "command/failures.h"

#include <algorithm>

#include <fmt/format.h>

#include "pif/base/print.h"

namespace pif::cli {
namespace {

constexpr std::size_t kErrorsKept = 1000;
constexpr std::size_t kSaidInTheEnd = 50;

}  // namespace

void Failures::add(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (say_ == Say::kAtOnce) print_error(fmt::format("pif: {}\n", program_.text_of(error)));
  if (errors_.size() < kErrorsKept) errors_.push_back(error);
  ++count_;
}

bool Failures::is_empty() const {
  const std::lock_guard lock(mutex_);
  return count_ == 0;
}

void Failures::sum_up() const {
  const std::lock_guard lock(mutex_);
  const std::size_t said = say_ == Say::kAtOnce ? 0 : std::min(errors_.size(), kSaidInTheEnd);
  for (std::size_t i = 0; i < said; ++i) print_error(fmt::format("pif: {}\n", program_.text_of(errors_[i])));
  if (count_ <= 1) return;
  const bool is_all = say_ == Say::kAtOnce || said == count_;
  print_error(fmt::format("pif: {} things failed, {} said above; the rest is done\n", count_,
                          is_all ? "as" : fmt::format("the first {} as", said)));
}

void Failures::add_to(Json& document) const {
  const std::lock_guard lock(mutex_);
  if (errors_.empty()) return;
  document["error"] = json_of(errors_.front());
  for (const Error& error : errors_) document["errors"].push_back(json_of(error));
}

std::string Failures::members() const {
  Json document = Json::object();
  add_to(document);
  const std::string text = document.dump(-1, ' ', false, Json::error_handler_t::replace);
  return document.empty() ? "" : "," + text.substr(1, text.size() - 2);
}

bool ends_all(const Error& error) {
  const bool no_answer = error.code == Code::kUnavailable || error.code == Code::kTimeout;
  const bool of_server = error.node.empty() || error.node == "server";
  return error.code == Code::kCancelled || error.code == Code::kNoSpace || (no_answer && of_server);
}

Json json_of(const Error& error) {
  return {{"code", code_name(error.code)}, {"text", error.text}, {"node", error.node}};
}

std::optional<Code> code_named(std::string_view name) {
  for (std::uint32_t number = 1; code_name(static_cast<Code>(number)) != "unknown"; ++number) {
    if (code_name(static_cast<Code>(number)) == name) return static_cast<Code>(number);
  }
  return std::nullopt;
}

}  // namespace pif::cli
