// Files of the local machine among what is sorted: they go through files of the file system that never get a name.
#pragma once

#include <optional>
#include <string>

#include "../pif/command/io.h"
#include "pif/tool/controller.h"

namespace pif::sort {

// A file that a command line names.
struct Operand {
  enum class Kind : std::uint8_t { kPath /* in the file system */, kLocal, kStream /* standard input or output */ };
  Kind kind = Kind::kPath;
  std::string name;  // as messages have it: of a path without "pif:", of a local file without "file:"

  bool is_path() const { return kind == Kind::kPath; }
};
// "/a" and "pif:/a" are paths, "-" is a stream; "file:/a", and names without a slash in front, are local files.
// kInvalid for a path that cannot be, and for no name.
[[nodiscard]] Result<Operand> parse_operand(const std::string& text);

// Options of a file that never gets a name.
CreateOptions nameless_options(const Format& format);
// A local file, or standard input, as the controller's next input, of that format. folder: of the file system, where
// the user may make files. Errors: those of the local file, of Client::create() and of import_stream().
[[nodiscard]] Status take_local(tool::Controller& controller, const Operand& from, const Format& format,
                                const std::string& folder);

// A local output: it appears under its name, complete, or not at all; or it is standard output.
class LocalOutput {
 public:
  // kIo: it cannot be made there. Before anything is sorted.
  [[nodiscard]] static Result<LocalOutput> open(const Operand& to);
  // The kept header, then all records. kCancelled: the user wants the command to end. A reader of standard output that
  // has gone ends the process with SIGPIPE, as it does sort(1).
  [[nodiscard]] Status write(tool::Controller& controller, File& sorted);
  // kExists: keep_existing, and the name is taken.
  [[nodiscard]] Status publish(bool keep_existing);

 private:
  std::optional<cli::NewFile> file_;  // nothing: standard output
};

}  // namespace pif::sort
