#include "task.h"

#include <algorithm>

#include <fmt/format.h>

#include "../pif/text/text.h"
#include "../pif/transfer/get_files.h"
#include "each_record.h"
#include "keys/keys.h"
#include "output/output.h"
#include "pif/base/inheriting.h"
#include "pif/tool/csv.h"
#include "pif/tool/memory.h"
#include "runs/run.h"

namespace pif::sort {
namespace {

using Operands = std::vector<Operand>;

constexpr std::size_t kHeaderBytes = tool::kJobValueBytesMax / 2;  // that every worker gets

Result<Operands> parse_operands(const std::vector<std::string>& names) {
  Operands operands;
  for (const std::string& name : names) {
    PIF_TRY_VALUE(operands.emplace_back(), parse_operand(name));
  }
  return operands;
}

// The records of local files are what those of the first file of the file system are, else lines.
Result<Format> format_of_local(tool::Controller& controller, const SortOptions& wanted, const Operand* path) {
  if (path == nullptr) return wanted.keys.null_ended ? Format::delimited(0) : Format::lines();
  PIF_TRY_VALUE(const Entry entry, controller.client().stat(path->name));
  return entry.format;
}

// That the records of an input are as those of the first one, and each whole.
Status check_input(const Task& task, File& first, File& file, const FileLength& file_length) {
  const Format& format = file.format();
  const std::string& name = task.sources.back();
  if (format != first.format())
    return fail(Code::kInvalid, fmt::format("{} has other records than {}: what is sorted together is of one format "
                                            "(pif stat)",
                                            name, task.sources.front()));
  const bool short_last = format.is_fixed() && file_length.bytes != file_length.records * format.record_length;
  if (!short_last) return {};
  return fail(Code::kInvalid,
              fmt::format("{}: the last record is shorter than {} bytes: records of one length can be sorted "
                          "only if all have it (pif put --record-length, or --lines)",
                          name, format.record_length));
}

// As they come into the output: each with its delimiter.
Result<std::vector<std::string>> read_header(File& file, const std::string& name, std::uint64_t records) {
  std::vector<std::string> header;
  if (records == 0) return header;
  PIF_TRY_VALUE(const FileLength file_length, file.file_length());
  std::size_t bytes = 0;
  PIF_TRY(for_each_record(file, {0, std::min(records, file_length.records)}, [&](Bytes record) -> Result<bool> {
    const OutputRecord out(file.format());
    std::string& made = header.emplace_back(out.size(record), '\0');
    out.copy(record, std::as_writable_bytes(std::span(made)).data());
    bytes += made.size();
    if (bytes <= kHeaderBytes) return true;
    return fail(Code::kTooLarge, fmt::format("{}: the header records have more than {} bytes", name, kHeaderBytes));
  }));
  return header;
}

// "NAME" and "NAME:OPTS" of the first input's columns become "N:OPTS"; what names none stays as it is.
std::string key_of_column(const std::string& key, const std::string& names, char separator) {
  const std::size_t colon = key.rfind(':');
  for (const std::size_t end : {key.size(), std::min(colon, key.size())})
    if (const auto column = tool::csv_column(names, std::string_view(key).substr(0, end), separator))
      return fmt::format("{}{}", *column + 1, key.substr(end));
  return key;
}

// first, names: lines with the columns' names, of the first input and of this one.
Status take_columns(Task& task, const SortOptions& wanted, const std::string& first, const std::string& names) {
  const std::string& name = task.sources.back();
  if (names.empty())
    return fail(Code::kInvalid, name + " has no line of column names: --csv is for files of pif put --csv");
  if (names != first)
    return fail(Code::kInvalid, fmt::format("{} has other columns than {}", name, task.sources.front()));
  for (std::size_t i = 0; i < wanted.keys.keys.size(); ++i)
    task.keys.keys[i] = key_of_column(wanted.keys.keys[i], first, wanted.keys.separator.value_or(','));
  return {};
}

// Opens the inputs of one sort.
class Opening {
 public:
  Opening(tool::Controller& controller, const SortOptions& wanted, Operands sources, Task& task)
      : controller_(controller), wanted_(wanted), sources_(std::move(sources)), task_(task) {
    const auto found = std::find_if(sources_.begin(), sources_.end(), [](const Operand& at) { return at.is_path(); });
    if (found != sources_.end()) first_path_ = static_cast<std::size_t>(found - sources_.begin());
  }

  [[nodiscard]] Status open_all();
  // How the output is made.
  [[nodiscard]] Result<CreateOptions> output_options();

 private:
  const Operand* first_path() const { return first_path_ ? &sources_[*first_path_] : nullptr; }
  // Where files are made that never get a name.
  std::string nameless_folder() const {
    if (!wanted_.temporary.empty()) return wanted_.temporary;
    if (!wanted_.check && task_.target.is_path()) return cli::parent_of(task_.target.name);
    return first_path_ ? cli::parent_of(first_path()->name) : "/";
  }
  [[nodiscard]] Status open(const Operand& source);

  tool::Controller& controller_;
  const SortOptions& wanted_;
  const Operands sources_;
  std::optional<std::size_t> first_path_;
  Task& task_;
};

Status Opening::open(const Operand& source) {
  if (source.is_path()) {
    PIF_TRY(controller_.open(source.name));
  } else if (wanted_.keys.csv) {
    return fail(Code::kInvalid, source.name + " is a local file: --csv is for files of pif put --csv");
  } else {
    PIF_TRY_VALUE(const Format format, format_of_local(controller_, wanted_, first_path()));
    PIF_TRY(take_local(controller_, source, format, nameless_folder()));
  }
  File& file = controller_.input(task_.sources.size());
  task_.sources.push_back(source.name);
  if (wanted_.keys.csv)
    PIF_TRY(take_columns(task_, wanted_, cli::header_of(controller_.input(0)), cli::header_of(file)));
  PIF_TRY(KeyMaker::make(task_.keys, file.format()));
  PIF_TRY_VALUE(const FileLength file_length, file.file_length());
  task_.file_length.records += file_length.records;
  task_.file_length.bytes += file_length.bytes;
  return check_input(task_, controller_.input(0), file, file_length);
}

Status Opening::open_all() {
  task_.path = task_.target.is_path() ? task_.target.name : cli::join_path(nameless_folder(), ".pif-sort");
  for (const Operand& source : sources_) PIF_TRY(open(source));
  return {};
}

Result<CreateOptions> Opening::output_options() {
  if (task_.target.is_path()) {
    if (first_path_) return tool::options_of_output(controller_, *first_path_, first_path()->name, wanted_);
    return tool::options_of_new_output(controller_, controller_.input(0).format(), wanted_);
  }
  if (wanted_.width || wanted_.bevy || !wanted_.nodes.empty())
    return fail(Code::kInvalid, "--width, --nodes and --bevy are for an output in the file system");
  CreateOptions options = nameless_options(controller_.input(0).format());
  if (first_path_) options.attributes = controller_.input(*first_path_).attributes();
  return options;
}

}  // namespace

Result<Task> prepare(tool::Controller& controller, const SortOptions& wanted) {
  Task task;
  task.keys = wanted.keys;
  PIF_TRY_VALUE(Operands sources, parse_operands(wanted.sources));
  if (!wanted.check) {
    PIF_TRY_VALUE(task.target, parse_operand(wanted.target));
    if (!task.target.is_path()) {
      PIF_TRY_VALUE(LocalOutput local, LocalOutput::open(task.target));
      task.local.emplace(std::move(local));
    }
  }
  Opening opening(controller, wanted, std::move(sources), task);
  PIF_TRY(opening.open_all());
  if (wanted.check) return task;
  PIF_TRY_VALUE(task.header, read_header(controller.input(0), task.sources[0], wanted.header_records));
  const std::uint64_t memory = wanted.memory != 0 ? wanted.memory : tool::spare_memory();
  const std::uint64_t times = wanted.merge == MergeKind::kSplit ? 1 : 2;  // sub-files beside the runs
  const Format& format = controller.input(0).format();
  PIF_TRY_VALUE(const KeyMaker maker, KeyMaker::make(task.keys, format));
  task.memory = times * run_bytes(format, maker, task.file_length) > memory ? memory : 0;
  PIF_TRY_VALUE(task.options, opening.output_options());
  return task;
}

}  // namespace pif::sort
