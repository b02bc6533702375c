// Gather: parity of a file whose rows are sealed everywhere, before it is committed. An LFS makes whole pages out of
// its members' rows, and frames of rows that are in none, makes them durable, and enters them in the catalogue.
//
// An LFS that has no rows of the file has a component all the same, which the gather makes and seals.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "parity/keeping.h"

namespace pif::lfs {

class Gathering {
 public:
  explicit Gathering(Keeping& keeping);

  // Answers later. Twice the same is done once.
  void gather(const Request& request, const proto::Gather& asked);

 private:
  struct Job {
    ComponentPtr component;
    FileLength file_length;
    std::vector<ReplyToken> tokens;
    bool is_new = false;  // the component: made for this
    std::uint64_t pages = 0;
    std::shared_ptr<component::ParityFiles> files;
  };
  using JobPtr = std::shared_ptr<Job>;

  // The component, made if it is not there. Nothing: its gather has ended before.
  [[nodiscard]] Result<ComponentPtr> prepare(const Request& request, const Keeper& keeper);
  [[nodiscard]] Result<ComponentPtr> component_of(const Request& request, const Keeper& keeper);
  [[nodiscard]] Status begin(const Request& request, const Keeper& keeper, const JobPtr& job);
  void written(const JobPtr& job, const Status& status, const ParityRun::Outcome& outcome);
  void synced(const JobPtr& job, const Status& status);
  void end(const JobPtr& job, const Status& status);

  Keeping& keeping_;
  LfsContext& context_;
  std::unordered_map<std::uint64_t, JobPtr> jobs_;  // by file
};

}  // namespace pif::lfs
