// Gather: parity of a file whose rows are sealed everywhere, before it is committed. An LFS makes whole pages out of
// its members' rows, and frames of rows that are in none, makes them durable, and enters them in the catalogue. Rows of
// an absent member were copied here before: they are taken from their frames. Pages of a copy of a file that is here
// are copied.
//
// An LFS that has no rows of the file has a component all the same, which the gather makes and seals.
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "parity/copied_rows.h"
#include "parity/keeping.h"

namespace pif::lfs {

class Gathering {
 public:
  explicit Gathering(Keeping& keeping);

  // Answers later. Twice the same is done once.
  void gather(const Request& request, const proto::Gather& asked);
  // CopyRows of a file that is being created; checked. Makes the component if it is not there. Answers when the frames
  // are written; they are durable with the gather.
  void copy(const Request& request, const Keeper& keeper, CopiedRowsPtr rows);

 private:
  struct Asked {
    ReplyToken token = 0;
    std::uint64_t view = 0;  // as the request says it
  };
  struct Job {
    ComponentPtr component;
    Keeper keeper;
    FileLength file_length;
    std::vector<Asked> asked;
    bool is_new = false;  // the component: made for this
    std::uint64_t pages = 0;
    std::uint64_t view = 0;  // in which it began
    std::shared_ptr<component::ParityFiles> files;
    MemberOptions members;
    ParityPlan plan;
    std::uint64_t pap_begin = 0;  // no frame is needed before
  };
  using JobPtr = std::shared_ptr<Job>;
  // Copies of one file, written one after the other.
  struct CopyLine {
    struct Waiting {
      Asked asked;
      Keeper keeper;
      CopiedRowsPtr rows;
    };
    ComponentPtr component;
    std::deque<Waiting> waiting;
    bool is_busy = false;
  };

  // The component, made if it is not there. Nothing: its gather has ended before.
  [[nodiscard]] Result<ComponentPtr> prepare(const Request& request, const Keeper& keeper);
  [[nodiscard]] Result<ComponentPtr> component_of(const Request& request, const Keeper& keeper);
  [[nodiscard]] Status begin(const Request& request, const JobPtr& job);
  // What its source has of it, if there is one.
  void copy_pages(const Request& request, const JobPtr& job);
  // Away from the loop.
  [[nodiscard]] static Status find_copied(Job& job, const std::vector<bool>& is_absent);
  void run(const JobPtr& job);
  void written(const JobPtr& job, const Status& status, const ParityRun::Outcome& outcome);
  void synced(const JobPtr& job, const Status& status);
  void committed(const JobPtr& job, const Status& status);
  void end(const JobPtr& job, const Status& status);

  [[nodiscard]] Result<ComponentPtr> component_to_copy_to(const Request& request);
  void copy_next(std::uint64_t file);
  void copied(std::uint64_t file, const Asked& asked, const Status& status);

  Keeping& keeping_;
  LfsContext& context_;
  std::unordered_map<std::uint64_t, JobPtr> jobs_;      // by file
  std::unordered_map<std::uint64_t, CopyLine> copies_;  // by file; only those with something to do
};

}  // namespace pif::lfs
