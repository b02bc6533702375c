// tool new: the beginning of somebody's own tool, with a test, that builds and passes as it is.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>

#include <fmt/format.h>

#include "command/dispatch.h"
#include "command/help.h"
#include "command/program.h"
#include "newtool/templates.h"

namespace pif::cli {
namespace {

struct NewToolOptions {
  const CLI::App* app = nullptr;
  std::string name;
  bool talks = false;
};

// What the tests of both kinds do with the numbers 1 to 1000, a line each.
constexpr const char* kCheckFilter = R"sh(pif put -q --lines "$folder/in" /in
"$tool" -q --with 7 /in /out
grep 7 "$folder/in" > "$folder/expected"
pif get -q /out "$folder/out"
cmp "$folder/expected" "$folder/out")sh";
constexpr const char* kCheckTalking = R"sh(cat "$folder/in" "$folder/in" | pif put -q --lines - /in
test "$("$tool" /in)" = 1000)sh";

std::string filled(std::string text, const std::string& what, const std::string& with) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
  return text;
}

Status check_name(const NewToolOptions& options) {
  const std::string& name = options.name;
  const auto is_plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  if (name.empty() || name.size() > 40 || name[0] < 'a' || name[0] > 'z' ||
      !std::all_of(name.begin(), name.end(), is_plain))
    return fail(Code::kInvalid,
                fmt::format("'{}' is no name for a tool: small letters, digits and '-', a letter first", name));
  const auto tools = tools_in(*options.app, {program_folder()});
  if (has_command(*options.app, name) || std::find(tools.begin(), tools.end(), name) != tools.end())
    return fail(Code::kInvalid, fmt::format("pif {} is there already: take another name", name));
  return {};
}

Status write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (file.flush()) return {};
  return fail(Code::kIo, "cannot write " + path.string());
}

Outcome new_tool(const Program& program, const NewToolOptions& options) {
  PIF_TRY(check_name(options));
  const std::filesystem::path folder = options.name;
  if (::mkdir(folder.c_str(), 0777) != 0)
    return fail_errno(errno, fmt::format("cannot make the folder {}", folder.string()));
  const auto fill = [&](const char* text) {
    return filled(filled(text, "@CHECK@", options.talks ? kCheckTalking : kCheckFilter), "@NAME@", options.name);
  };
  PIF_TRY(write_file(folder / (options.name + ".cc"), fill(options.talks ? templates::kTalking : templates::kFilter)));
  PIF_TRY(write_file(folder / "CMakeLists.txt", fill(templates::kCMake)));
  PIF_TRY(write_file(folder / "test.sh", fill(templates::kTest)));
  PIF_TRY(write_file(folder / "README.md", fill(templates::kReadme)));
  if (program.common.json) {
    PIF_TRY(print(Json{{"folder", options.name}}));
  } else if (!program.common.quiet) {
    PIF_TRY(
        print(fmt::format("made {0}/{0}.cc, CMakeLists.txt, test.sh, README.md. Now:\n"
                          "  cd {0} && cmake -B build && cmake --build build && ctest --test-dir build\n",
                          options.name)));
  }
  return ExitCode::kDone;
}

}  // namespace

void add_tool_command(CLI::App& app, Program& program) {
  CLI::App* tool = add_command(app, program, "tool", "Begin a tool of your own: pif tool new NAME",
                               "  pif tool new squeeze\n  pif tool new --talking join");
  tool->require_subcommand(1);
  CLI::App* make =
      tool->add_subcommand("new", "A folder NAME with the source of a tool, a test, CMakeLists.txt, README.md");
  make->fallthrough();
  auto options = std::make_shared<NewToolOptions>();
  options->app = &app;
  make->add_option("NAME", options->name, "Of the tool: `pif NAME` will run it")->required();
  make->add_flag("--talking", options->talks, "Workers that talk with each other, instead of a filter");
  on_run(make, program, options, new_tool);
}

}  // namespace pif::cli
