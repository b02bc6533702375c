// Sorted records to their places in the output where these depend on the records before: variable ones, fixed ones of
// which some are dropped, and bevies. All workers write to all components at once: each counts its share, then sums up
// how many bytes of it belong to each component, and so everybody knows where its stretch of each component begins
// (component/stretch.h).
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "output/output.h"
#include "output/share_reader.h"
#include "pif/component/stretch.h"
#include "pif/tool/worker.h"

namespace pif::sort {

// A worker's share, on all of its threads.
class Stretches {
 public:
  struct Sorted {
    const KeyMaker& maker;
    const RecordNumbers& numbers;
    std::span<const RunView> runs;
    bool unique;
    bool keep;                        // there is memory for places of records
    std::span<const Bytes> in_front;  // of the share: they are put out before it, as they are
  };
  // share: positions of all records, dropped ones too. files: of the output's components, by LfsIndex. All outlive it.
  Stretches(tool::Worker& worker, const tool::Output& output, std::span<component::Files> files, const Sorted& sorted,
            Range share);

  // In this order. How many records the share puts out;
  [[nodiscard]] Result<std::uint64_t> count();
  // only so many of them, if they are too many;
  void cut(std::uint64_t records);
  // how many bytes of them each component gets, by LfsIndex, if the first one has that number in the output;
  [[nodiscard]] Result<std::vector<std::uint64_t>> measure(RecordNumber first);
  // and all of them, if so many bytes of each component come before. written(bytes): so many more are; on this thread.
  [[nodiscard]] Status write(std::span<const std::uint64_t> before,
                             const std::function<void(std::uint64_t bytes)>& written);
  // In turn (tool::Team): how the components go on, as the worker before this one has left them, by LfsIndex.
  [[nodiscard]] Status finish(std::span<component::Seam> seams);

 private:
  // The work of one thread.
  struct Part {
    Part(const Sorted& sorted, Range range, std::span<const Bytes> in_front);
    ShareReader reader;
    Range numbers;
    std::vector<std::uint64_t> bytes;  // for each component
    std::vector<std::unique_ptr<component::StretchWriter>> writers;
    std::vector<std::size_t> chosen;  // of some records, those for one component
    std::vector<std::uint32_t> lengths;
    std::vector<std::byte> buffer;
    std::size_t used = 0;  // of it
  };
  void choose(Part& part, LfsIndex lfs, Range numbers) const;
  [[nodiscard]] Status write_part(Part& part, const std::function<void(std::uint64_t bytes)>& written) const;
  [[nodiscard]] Status put(Part& part, LfsIndex lfs, std::span<const Bytes> records) const;
  [[nodiscard]] Status flush(Part& part, LfsIndex lfs) const;
  std::size_t size_of(Bytes record) const;

  tool::Worker& worker_;
  const tool::Output& output_;
  std::span<component::Files> files_;
  OutputRecord record_;
  bool are_ended_;  // all records have their delimiters
  std::vector<std::unique_ptr<Part>> parts_;
};

}  // namespace pif::sort
