// top-k SRC: the records with the largest numbers in one of their fields. Every worker finds the largest of its
// component; the controller merges what they say, and reads the records themselves.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <iostream>
#include <memory>
#include <sstream>

#include <CLI/CLI.hpp>

#include "pif/tool/tool_main.h"

namespace {

struct Options {
  std::string source;
  unsigned count = 10;
  unsigned field = 1;
};

struct Found {
  double value = 0;
  pif::RecordNumber record = 0;
  bool operator<(const Found& other) const {
    return value != other.value ? value > other.value : record < other.record;
  }
};

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Field 1 is the first; blanks stand between fields. Empty: there are not so many.
std::string_view field_of(std::string_view record, unsigned field) {
  for (;; --field) {
    const auto begin = std::min(record.find_first_not_of(" \t\r\n"), record.size());
    const auto end = std::min(record.find_first_of(" \t\r\n", begin), record.size());
    if (field == 1 || begin == end) return record.substr(begin, end - begin);
    record = record.substr(end);
  }
}

std::optional<double> number_in(std::string_view field) {
  double value = 0;
  const auto read = std::from_chars(field.data(), field.data() + field.size(), value);
  if (read.ec != std::errc() || read.ptr != field.data() + field.size() || std::isnan(value)) return std::nullopt;
  return value;
}

// Keeps the first `count` in order.
void keep_first(std::vector<Found>& found, std::size_t count) {
  const auto end = found.begin() + static_cast<std::ptrdiff_t>(std::min(found.size(), count));
  std::partial_sort(found.begin(), end, found.end());
  found.erase(end, found.end());
}

// What is said between processes is text: "17.5 12\n" for record 12.
pif::Status work(pif::tool::Worker& worker) {
  PIF_TRY_VALUE(pif::tool::Input* const in, worker.input(0));
  std::istringstream value{std::string(worker.value())};
  std::size_t count = 0;
  unsigned field = 0;
  if (!(value >> count >> field)) return pif::fail(pif::Code::kInternal, "the job's value cannot be read");
  std::vector<Found> found;
  for (pif::tool::RowBatch batch; in->is_here();) {
    PIF_TRY_VALUE(const bool more, in->next(batch));
    if (!more) break;
    pif::Row row = batch.first;
    batch.for_each([&](auto record) {
      const pif::RecordNumber number = in->layout().record_at({in->index(), row++});
      const auto key = number_in(field_of(text_of(record), field));
      if (key) found.push_back({*key, number});
    });
    if (found.size() > 4 * count) keep_first(found, count);
    worker.progress(in->bytes_read(), in->bytes());
  }
  keep_first(found, count);
  std::ostringstream result;
  result.precision(17);
  for (const Found& one : found) result << one.value << ' ' << one.record << '\n';
  worker.set_result(result.str());
  return {};
}

// What another process says is checked: it may be another program of the same name.
pif::Status take(const std::string& result, std::uint64_t records, std::vector<Found>& found) {
  std::istringstream words(result);
  for (Found one; words >> one.value >> one.record;) {
    if (one.record >= records) return pif::fail(pif::Code::kInternal, "a worker named a record that is not there");
    found.push_back(one);
  }
  return words.eof() ? pif::Status() : pif::fail(pif::Code::kInternal, "a worker's result cannot be read");
}

pif::Result<std::string> read_record(pif::File& file, pif::RecordNumber number, const pif::FileLength& file_length) {
  if (!file.format().is_fixed()) {
    PIF_TRY_VALUE(const pif::RecordBatch batch, file.read_batch_at(number, 1));
    return std::string(text_of(batch.data));
  }
  const std::uint64_t length = file.format().record_length;
  std::string record(std::min(length, file_length.bytes - number * length), '\0');
  PIF_TRY(file.read_at(number, std::as_writable_bytes(std::span(record)), 1));
  return record;
}

pif::Result<pif::tool::ExitCode> control(pif::tool::Controller& controller, const Options& options) {
  PIF_TRY_VALUE(const std::string source, pif::tool::pif_path(options.source));
  PIF_TRY_VALUE(const std::size_t input, controller.open(source));
  PIF_TRY_VALUE(const pif::FileLength file_length, controller.input(input).file_length());
  PIF_TRY_VALUE(const auto results,
                controller.run({.value = std::to_string(options.count) + " " + std::to_string(options.field)}));
  std::vector<Found> found;
  for (const std::string& result : results) PIF_TRY(take(result, file_length.records, found));
  keep_first(found, options.count);
  controller.report().add_result("records", found.size());
  if (controller.report().is_json) return pif::tool::ExitCode::kDone;
  for (const Found& one : found) {
    PIF_TRY_VALUE(const std::string record, read_record(controller.input(input), one.record, file_length));
    std::cout << record << (record.ends_with('\n') ? "" : "\n");
  }
  std::cout.flush();
  return pif::tool::ExitCode::kDone;
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = std::make_shared<Options>();
  pif::tool::Tool tool;
  tool.name = "top-k";
  tool.summary =
      "Prints the records with the largest numbers in one field; those without a number there are passed over.";
  tool.examples = "  top-k /log                  the ten largest by the first field\n  top-k -k 3 --field 2 /log\n";
  tool.options = [options](CLI::App& app) {
    app.add_option("-k,--count", options->count, "how many")->check(CLI::Range(1, 1000));
    app.add_option("-f,--field", options->field, "which field, counted from 1")->check(CLI::Range(1, 1000));
    app.add_option("SRC", options->source, "the file to read")->required();
  };
  tool.control = [options](pif::tool::Controller& controller) { return control(controller, *options); };
  tool.work = work;
  return pif::tool::main(argc, argv, tool);
}
