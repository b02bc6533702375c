// placement, locate: where records are, one by one or as the run that each LFS has; with bevies also their cells and
// parity cells, as figure 4.1 of the thesis shows them. Arithmetic of parity/layout.h; nothing is read.
#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "command/program.h"
#include "pif/base/decimal.h"
#include "pif/base/typed_path.h"
#include "pif/parity/layout.h"
#include "text/text.h"

namespace pif::cli {
namespace {

struct PlacementOptions {
  std::string path;
  std::string records;
  std::uint32_t width = 0;
  std::string bevies;
};

constexpr std::size_t kFlushBytes = 64u << 10;

// Prints one record after another, so that a range of any length needs little memory.
class Cells {
 public:
  // names: of the LFSs, in the layout's order; empty: do not show them.
  Cells(const parity::Layout& layout, std::vector<std::string> names, bool json)
      : layout_(layout), names_(std::move(names)), json_(json) {}

  Status print_all(Range range) {
    text_ = json_ ? "{\"records\":[" : heading();
    for (RecordNumber n = range.begin; n < range.end; ++n) {
      if (json_ && n != range.begin) text_ += ",";
      json_ ? add_json(n) : add_line(n);
      if (text_.size() >= kFlushBytes) PIF_TRY(flush());
    }
    if (json_) text_ += "]}\n";
    return flush();
  }

 private:
  std::string heading() const {
    std::string line = fmt::format("{:>12} {:>5} {:>12}", "record", "lfs", "row");
    if (layout_.has_parity())
      line += fmt::format(" {:>12} {:>10} {:>12} {:>12}", "cell", "parity_lfs", "parity_row", "parity_cell");
    if (!names_.empty()) line += "  node";
    return line + "\n";
  }
  void add_line(RecordNumber n) {
    const Cell cell = layout_.locate(n);
    text_ += fmt::format("{:>12} {:>5} {:>12}", n, cell.lfs, cell.row);
    if (layout_.has_parity()) {
      const Cell parity = layout_.parity_of(cell);
      text_ += fmt::format(" {:>12} {:>10} {:>12} {:>12}", layout_.cell_row(cell), parity.lfs, parity.row,
                           layout_.parity_cell_row(parity.lfs, parity.row));
    }
    if (!names_.empty()) text_ += "  " + names_[cell.lfs];
    text_ += '\n';
  }
  void add_json(RecordNumber n) {
    const Cell cell = layout_.locate(n);
    Json record = {{"record", n}, {"lfs", cell.lfs}, {"row", cell.row}};
    if (layout_.has_parity()) {
      const Cell parity = layout_.parity_of(cell);
      record["cell_row"] = layout_.cell_row(cell);
      record["parity_lfs"] = parity.lfs;
      record["parity_row"] = parity.row;
      record["parity_cell_row"] = layout_.parity_cell_row(parity.lfs, parity.row);
    }
    if (!names_.empty()) record["node"] = names_[cell.lfs];
    text_ += record.dump();
  }
  Status flush() {
    PIF_TRY(print(text_));
    text_.clear();
    return {};
  }

  const parity::Layout& layout_;
  std::vector<std::string> names_;
  bool json_;
  std::string text_;
};

// What one LFS has of the first `records` records.
struct Run {
  LfsIndex lfs = 0;
  std::uint64_t records = 0;
  Range rows;
  std::vector<RecordNumber> first;  // three at most
  RecordNumber last = 0;
};

Run run_of(const parity::Layout& layout, LfsIndex lfs, std::uint64_t records) {
  constexpr Row kFirst = 3;
  Run run;
  run.lfs = lfs;
  run.records = layout.rows(lfs, records);
  run.rows = {0, run.records};
  if (run.records == 0) return run;
  run.last = layout.record_at({lfs, run.rows.end - 1});
  for (Row row = 0; row < std::min(run.rows.end, kFirst); ++row) run.first.push_back(layout.record_at({lfs, row}));
  return run;
}

// "0, 4, 8, ... 96"
std::string text_of(const Run& run) {
  std::string text = fmt::format("{}", fmt::join(run.first, ", "));
  if (run.records > run.first.size())
    text += fmt::format("{}{}", run.records > run.first.size() + 1 ? ", ... " : ", ", run.last);
  return text;
}

Json json_of_run(const Run& run, const std::string& node) {
  Json out = {{"lfs", run.lfs},
              {"node", node},
              {"records", run.records},
              {"rows", {{"begin", run.rows.begin}, {"end", run.rows.end}}}};
  if (run.records > 0) out.update({{"first", run.first[0]}, {"last", run.last}});
  return out;
}

Status print_runs(const Program& program, const parity::Layout& layout, const std::vector<std::string>& names,
                  const std::string& path, std::uint64_t records) {
  Json document = {{"path", path},
                   {"record_count", records},
                   {"width", layout.width()},
                   {"bevies", layout.bevies()},
                   {"ranges", Json::array()}};
  std::vector<std::vector<std::string>> rows = {{"lfs", "node", "records", "rows", "which"}};
  for (LfsIndex lfs = 0; lfs < layout.width(); ++lfs) {
    const Run run = run_of(layout, lfs, records);
    document["ranges"].push_back(json_of_run(run, names[lfs]));
    rows.push_back({std::to_string(lfs), names[lfs], std::to_string(run.records),
                    fmt::format("{}:{}", run.rows.begin, run.rows.end), text_of(run)});
  }
  if (program.common.json) return print(document);
  const std::string rule =
      layout.is_even() ? fmt::format("record n is row n / {0} of LFS n mod {0}", layout.width()) : "in bevies";
  return print(fmt::format("{}: {} records over {} LFSs, {}\n", shown(path), records, layout.width(), rule) +
               table(rows, {0, 2}));
}

Outcome placement(const Program& program, const PlacementOptions& options) {
  std::vector<std::uint32_t> bevies;
  if (!options.bevies.empty()) {
    PIF_TRY_VALUE(bevies, parse_list(options.bevies, "--bevies"));
  }
  PIF_TRY_VALUE(const parity::Layout layout, parity::Layout::make(options.width, bevies));
  PIF_TRY_VALUE(const OpenRange range, parse_range(options.records));
  if (!range.end)
    return fail(Code::kInvalid, "there is no file to end the range " + options.records + "; say --records A:B");
  PIF_TRY(Cells(layout, {}, program.common.json).print_all({range.begin, *range.end}));
  return ExitCode::kDone;
}

// As published now where an LFS can be asked, else as the directory knows it.
std::uint64_t records_of(Client& client, const Entry& entry, const std::string& path) {
  Result<File> file = client.open(path);
  if (!file) return entry.file_length.records;
  const Result<FileLength> file_length = file->file_length();
  const Status closed = file->close();
  return file_length && closed ? file_length->records : entry.file_length.records;
}

Result<std::vector<std::string>> names_of(Client& client, const std::vector<std::uint32_t>& nodes) {
  PIF_TRY_VALUE(const SystemStatus status, client.status());
  std::vector<std::string> names;
  for (const std::uint32_t id : nodes) {
    names.push_back(fmt::format("node {}", id));
    for (const Node& node : status.nodes) {
      if (node.id == id) names.back() = node.name;
    }
  }
  return names;
}

Outcome locate(const Program& program, const PlacementOptions& options) {
  PIF_TRY_VALUE(const std::string path, parse_path(options.path));
  PIF_TRY_VALUE(const OpenRange range, parse_range(options.records.empty() ? ":" : options.records));
  PIF_TRY_VALUE(Client client, program.connect());
  PIF_TRY_VALUE(const Entry entry, client.stat(path));
  if (entry.kind == EntryKind::kFolder) return fail(Code::kIsDirectory, path + " is a folder; name a file");
  if (entry.kind != EntryKind::kFile)
    return fail(Code::kInvalid, fmt::format("{} is a {}, which has no records", path, kind_word(entry.kind)));
  PIF_TRY_VALUE(const parity::Layout layout,
                parity::Layout::make(static_cast<std::uint32_t>(entry.nodes.size()), entry.bevies));
  PIF_TRY_VALUE(std::vector<std::string> names, names_of(client, entry.nodes));
  const std::uint64_t records = records_of(client, entry, path);
  if (options.records.empty()) {
    PIF_TRY(print_runs(program, layout, names, path, records));
    return ExitCode::kDone;
  }
  const Range clipped = range.clip(records);
  PIF_TRY(Cells(layout, std::move(names), program.common.json).print_all(clipped));
  return ExitCode::kDone;
}

}  // namespace

void add_placement_commands(CLI::App& app, Program& program) {
  auto file_options = std::make_shared<PlacementOptions>();
  CLI::App* file =
      add_command(app, program, "locate", "Show which records of a file each LFS has, or where single ones are",
                  "  pif locate /data/a.txt                    what each LFS has\n"
                  "  pif locate --records 0:10 /data/a.txt     LFS, row and parity cell of each of these\n"
                  "  pif locate --json --records 7:8 /data/a.txt");
  file->add_option("FILE", file_options->path, "The file")->required();
  file->add_option("--records", file_options->records, "These one by one, half open, from 0 (:, all of them)")
      ->type_name("A:B");
  on_run(file, program, file_options, locate);

  auto plain_options = std::make_shared<PlacementOptions>();
  CLI::App* plain =
      add_command(app, program, "placement", "Show where records of a layout go: arithmetic, without a file",
                  "  pif placement --width 4 --records 0:10\n"
                  "  pif placement --width 8 --bevies 4,4 --records 0:48 --json");
  plain->add_option("--width", plain_options->width, "Number of LFSs")
      ->required()
      ->transform(whole_number)
      ->type_name("P");
  plain->add_option("--bevies", plain_options->bevies, "Sizes of the bevies, in order (default: no parity)")
      ->type_name("B,B,..");
  plain->add_option("--records", plain_options->records, "Which ones, half open, from 0")->required()->type_name("A:B");
  on_run(plain, program, plain_options, placement);
}

}  // namespace pif::cli
