#include "decompress.h"

#include <optional>

#include <fmt/format.h>

#include "../pif_compress/stored.h"
#include "pif/tool/head.h"
#include "pif/tool/made.h"

namespace pif::decompress {
namespace {

using compress::Description;

struct Opened {
  std::string target;
  std::size_t input = 0;
  FileLength file_length;  // of the compressed file
  Description description;
  compress::Task task;
  CreateOptions options;  // of the output
  bool moves = false;     // chains lie across LFSs
};

Result<Opened> open(tool::Controller& controller, const DecompressOptions& wanted) {
  Opened opened;
  PIF_TRY_VALUE(const std::string source, tool::pif_path(wanted.source));
  PIF_TRY_VALUE(opened.target, tool::pif_path(wanted.target));
  PIF_TRY_VALUE(opened.input, controller.open(source));
  File& file = controller.input(opened.input);
  PIF_TRY_VALUE(opened.description, compress::description_of(file.attributes(), source));
  opened.task = compress::task_of(file.attributes());
  PIF_TRY_VALUE(opened.file_length, file.file_length());
  PIF_TRY_VALUE(const auto original, opened.description.layout());
  opened.moves = opened.description.has_chains && original != file.layout();
  if (opened.moves && opened.file_length.records != opened.description.records)
    return fail(Code::kUnsupported,
                fmt::format("{} has {} records, and had {} when it was compressed; with --context all are needed",
                            source, opened.file_length.records, opened.description.records));
  PIF_TRY_VALUE(opened.options, tool::options_of_output(controller, opened.input, source, wanted));
  PIF_TRY_VALUE(opened.options.format, opened.description.format());
  opened.options.attributes.erase(std::string(compress::kDescriptionAttribute));
  opened.options.attributes.erase(std::string(compress::kDictionaryAttribute));
  return opened;
}

}  // namespace

Result<tool::ExitCode> control(tool::Controller& controller, const DecompressOptions& wanted) {
  PIF_TRY_VALUE(const Opened opened, open(controller, wanted));
  if (opened.file_length.records == 0) {  // no records, no components, no workers
    PIF_TRY(controller.client().create_empty(opened.target, opened.options));
    return tool::ExitCode::kDone;
  }
  PIF_TRY_VALUE(const std::size_t output, controller.create(opened.target, opened.options));
  PIF_TRY_VALUE(const auto results, controller.run({.value = tool::pack_head(opened.task), .threads = wanted.threads}));
  PIF_TRY_VALUE(const FileLength made, tool::sum_of_made(results));
  controller.set_file_length(output, made);
  PIF_TRY(controller.commit());
  controller.report().add_result("records", made.records);
  controller.report().add_result("bytes", made.bytes);
  controller.report().add_result("compressed_bytes", opened.file_length.bytes);
  return tool::ExitCode::kDone;
}

Result<tool::Plan> explain(tool::Controller& controller, const DecompressOptions& wanted) {
  PIF_TRY_VALUE(const Opened opened, open(controller, wanted));
  const std::uint64_t p = controller.input(opened.input).layout().width();
  return tool::Plan{
      {"source", wanted.source},
      {"target", opened.target},
      {"records", std::to_string(opened.file_length.records)},
      {"compressed_bytes", std::to_string(opened.file_length.bytes)},
      {"bytes", std::to_string(opened.description.bytes)},
      {"moved", opened.moves ? fmt::format("about {} bytes: records of one chain lie on several LFSs",
                                           (opened.file_length.bytes + opened.description.bytes) / p * (p - 1))
                             : "nothing: each LFS decompresses what it has of the file"}};
}

}  // namespace pif::decompress
