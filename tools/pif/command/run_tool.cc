#include "command/run_tool.h"

#include <cstdlib>

#include <fmt/format.h>

#include "command/child.h"
#include "command/interrupt.h"

namespace pif::cli {
namespace {

// What a tool's report says went wrong.
Error error_in(const std::string& tool, const Json& document, int exit_code) {
  const Json error = document.is_object() ? document.value("error", Json::object()) : Json::object();
  if (!error.is_object() || !error.contains("text"))
    return {Code::kInternal, fmt::format("{} ended with {} and did not say why", tool, exit_code), {}};
  return {code_named(error.value("code", "")).value_or(Code::kInternal), error.value("text", ""),
          error.value("node", "")};
}

}  // namespace

Result<Json> run_tool(const Program& program, const std::string& tool, const std::vector<std::string>& arguments) {
  const Common& common = program.common;
  std::vector<std::string> words = {tool, "--json", "--pif", program.folder(), "--route", common.route};
  if (common.stale) words.emplace_back("--stale");
  words.insert(words.end(), arguments.begin(), arguments.end());
  if (common.data != "auto") ::setenv("PIF_DATA", common.data.c_str(), 1);
  PIF_TRY_VALUE(const ChildEnd end, run_child(std::move(words), ChildOutput::kCatch));
  PIF_TRY(check_interrupt());
  Json document = Json::parse(end.output, nullptr, false);
  if (end.exit_code != 0 || !document.is_object()) return fail(error_in(tool, document, end.exit_code));
  return document;
}

}  // namespace pif::cli
