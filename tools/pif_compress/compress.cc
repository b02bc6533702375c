#include "compress.h"

#include <memory>
#include <mutex>
#include <vector>

#include <fmt/format.h>

#include "codec.h"
#include "pif/base/limits.h"
#include "pif/tool/copy_class.h"
#include "pif/tool/head.h"
#include "pif/tool/made.h"
#include "stored.h"
#include "training.h"

namespace pif::compress {
namespace {

constexpr std::size_t kDictionaryBytesMax = 32u << 10;
constexpr std::size_t kRoomForOthers = 1024;  // of a file's attributes

// ---- the controller -------------------------------------------------------------------------------------------------

struct Opened {
  std::string target;
  std::size_t input = 0;
  FileLength file_length;
  CreateOptions options;  // of the output
};

Result<Opened> open(tool::Controller& controller, const CompressOptions& wanted) {
  Opened opened;
  PIF_TRY_VALUE(const std::string source, tool::pif_path(wanted.source));
  PIF_TRY_VALUE(opened.target, tool::pif_path(wanted.target));
  PIF_TRY_VALUE(opened.input, controller.open(source));
  File& file = controller.input(opened.input);
  if (is_compressed(file.attributes())) return fail(Code::kInvalid, source + " is compressed already");
  PIF_TRY_VALUE(opened.file_length, file.file_length());
  PIF_TRY_VALUE(opened.options, tool::options_of_output(controller, opened.input, source, wanted));
  opened.options.format = Format::variable();
  Description description = Description::of(file.format(), opened.file_length, file.layout());
  description.level = static_cast<std::uint32_t>(wanted.level);
  description.has_chains = wanted.has_chains;
  opened.options.attributes[std::string(kDescriptionAttribute)] = tool::pack_head(description);
  return opened;
}

// The dictionary goes among the attributes, if they have room for it.
Status add_dictionary(tool::Controller& controller, Opened& opened) {
  std::size_t used = kRoomForOthers;
  for (const auto& [name, value] : opened.options.attributes) used += name.size() + value.size();
  if (used >= kAttributeBytesMax) return {};
  PIF_TRY_VALUE(std::string dictionary, train_dictionary(controller.input(opened.input), opened.file_length,
                                                         std::min(kDictionaryBytesMax, kAttributeBytesMax - used)));
  if (!dictionary.empty()) opened.options.attributes[std::string(kDictionaryAttribute)] = std::move(dictionary);
  return {};
}

// ---- the worker -----------------------------------------------------------------------------------------------------

// One for each thread that asks at the same time.
class Encoders {
 public:
  Encoders(const Dictionary& dictionary, int level) : dictionary_(dictionary), level_(level) {}
  std::unique_ptr<Encoder> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<Encoder>(dictionary_, level_);
    auto taken = std::move(free_.back());
    free_.pop_back();
    return taken;
  }
  void give(std::unique_ptr<Encoder> encoder) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(encoder));
  }

 private:
  const Dictionary& dictionary_;
  const int level_;
  std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<Encoder>> free_;
};

// The records of a batch, as they come and as they are stored.
class BatchEncoding {
 public:
  BatchEncoding(Encoder& encoder, tool::RowBatch& batch) : encoder_(encoder), batch_(batch) {
    batch.for_each([this](std::span<const std::byte> record) { records_.push_back(record); });
    stored_.reserve(batch.data.size() / 2);
  }
  // A chain ends with its batch: so it is at most as long as one.
  Status run(bool has_chains) {
    for (std::size_t i = 0; i < records_.size(); ++i) {
      const std::size_t before = stored_.size(), place = i % kChainMax;
      if (has_chains && place == 0) encoder_.begin_chain(bytes_of_chain(i));
      const bool is_last = place + 1 == kChainMax || i + 1 == records_.size();
      Status added =
          has_chains ? encoder_.add_to_chain(records_[i], is_last, stored_) : encoder_.add(records_[i], stored_);
      if (!added) {
        row_ = batch_.first + i;
        return added;
      }
      lengths_.push_back(static_cast<std::uint32_t>(stored_.size() - before));
    }
    batch_.record_length = 0;
    batch_.lengths = std::move(lengths_);
    batch_.data = std::move(stored_);
    return {};
  }
  Row failed_row() const { return row_; }

 private:
  std::uint64_t bytes_of_chain(std::size_t head) const {
    std::uint64_t bytes = 0;
    for (std::size_t i = head; i < records_.size() && i < head + kChainMax; ++i) bytes += records_[i].size();
    return bytes;
  }

  Encoder& encoder_;
  tool::RowBatch& batch_;
  std::vector<std::span<const std::byte>> records_;
  std::vector<std::byte> stored_;
  std::vector<std::uint32_t> lengths_;
  Row row_ = 0;
};

Status encode(const tool::Input& input, Encoder& encoder, bool has_chains, tool::RowBatch& batch) {
  BatchEncoding encoding(encoder, batch);
  Status done = encoding.run(has_chains);
  if (done) return done;
  Error error = done.error();
  error.text =
      fmt::format("record {} (from 0) of {} {}", input.layout().record_at({input.index(), encoding.failed_row()}),
                  input.file().path, error.text);
  return fail(std::move(error));
}

}  // namespace

Result<tool::ExitCode> control(tool::Controller& controller, const CompressOptions& wanted) {
  PIF_TRY_VALUE(Opened opened, open(controller, wanted));
  if (opened.file_length.records == 0) {  // no records, no components, no workers
    PIF_TRY(controller.client().create_empty(opened.target, opened.options));
    return tool::ExitCode::kDone;
  }
  PIF_TRY(add_dictionary(controller, opened));
  PIF_TRY_VALUE(const std::size_t output, controller.create(opened.target, opened.options));
  PIF_TRY_VALUE(const auto results, controller.run({.value = tool::pack_head(task_of(opened.options.attributes)),
                                                    .threads = wanted.threads}));
  PIF_TRY_VALUE(const FileLength made, tool::sum_of_made(results));
  controller.set_file_length(output, made);
  PIF_TRY(controller.commit());
  controller.report().add_result("records", made.records);
  controller.report().add_result("bytes", opened.file_length.bytes);
  controller.report().add_result("compressed_bytes", made.bytes);
  const auto dictionary = opened.options.attributes.find(std::string(kDictionaryAttribute));
  controller.report().add_result("dictionary_bytes",
                                 dictionary == opened.options.attributes.end() ? 0 : dictionary->second.size());
  return tool::ExitCode::kDone;
}

Result<tool::Plan> explain(tool::Controller& controller, const CompressOptions& wanted) {
  PIF_TRY_VALUE(const Opened opened, open(controller, wanted));
  return tool::Plan{{"source", wanted.source},
                    {"target", opened.target},
                    {"records", std::to_string(opened.file_length.records)},
                    {"bytes", std::to_string(opened.file_length.bytes)},
                    {"level", std::to_string(wanted.level)},
                    {"method", wanted.has_chains ? fmt::format("records of an LFS in chains of {}", kChainMax)
                                                 : "each record by itself, so that any one can be read alone"},
                    {"moved", "nothing: each LFS compresses what it has of the file"}};
}

Status work(tool::Worker& worker) {
  PIF_TRY_VALUE(const Task task, worker.value_as<Task>());
  const auto description = tool::unpack_head<Description>(task.description);
  if (!description) return fail(Code::kInternal, "the job's value cannot be read");
  PIF_TRY_VALUE(tool::Input* const input, worker.input(0));
  PIF_TRY_VALUE(tool::Output* const output, worker.output(0));
  tool::Made made;
  if (input->is_here() && input->rows() > 0) {
    const int level = static_cast<int>(description->level);
    PIF_TRY_VALUE(const Dictionary dictionary, Dictionary::make(task.dictionary, level));
    Encoders encoders(dictionary, level);
    const auto encode_batch = [&](tool::RowBatch& batch) -> Status {
      auto encoder = encoders.take();
      PIF_TRY(encode(*input, *encoder, description->has_chains, batch));
      encoders.give(std::move(encoder));
      return {};
    };
    PIF_TRY(tool::transform(worker, *input, *output, encode_batch, tool::Calls::kAtOnce));
    made = {input->rows(), output->bytes_written()};
  }
  worker.set_result_as(made);
  return {};
}

}  // namespace pif::compress
