// Findings of workers, as they find them: records that the controller gets in the order of their numbers, from all
// workers together, in bounded memory. A worker that is ahead of the others waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "pif/base/result.h"
#include "pif/tool/stream_taker.h"
#include "pif/tool/worker.h"

namespace pif::tool {

// The worker's end. One per worker, in its thread.
class RecordStream {
 public:
  // worker outlives it.
  explicit RecordStream(Worker& worker) : worker_(worker) {}

  // In ascending order of keys; several of one key follow one another. At most kRecordLengthMax bytes and some more.
  // Waits while the controller takes nothing. Errors: as a call of the LFS.
  [[nodiscard]] Status put(StreamKey key, std::span<const std::byte> bytes);
  // This worker puts nothing before `key` any more: what others put there need not wait for it. Cheap: for every batch.
  [[nodiscard]] Status pass(StreamKey key);
  // Sends what is left. A worker that ends without it has put nothing since.
  [[nodiscard]] Status end();

 private:
  void add_frame(StreamKey key, std::uint32_t length);
  [[nodiscard]] Status send();

  Worker& worker_;
  std::string waiting_;  // not sent yet
  StreamKey passed_;
  Time sent_{};
};

}  // namespace pif::tool
