// Gather: parity of a file whose rows are sealed everywhere, before it is committed. An LFS makes whole pages out of
// its members' rows, and frames of rows that are in none, makes them durable, and enters them in the catalogue. Rows of
// an absent member were copied here before: they are taken from their frames. Pages of a copy of a file that is here
// are copied.
//
// An LFS that has no rows of the file has a component all the same, which the gather makes and seals.
#pragma once

#include "parity/copied_rows.h"
#include "parity/keeping.h"

namespace pif::lfs {

class Gathering {
 public:
  explicit Gathering(Keeping& keeping);

  // Twice the same is done once.
  [[nodiscard]] Status gather(const Request& request, const proto::Gather& asked);
  // CopyRows of a file that is being created; checked. Makes the component if it is not there. Returns when the frames
  // are written; they are durable with the gather.
  [[nodiscard]] Status copy(const Request& request, const Keeper& keeper, const CopiedRowsPtr& rows);

 private:
  // The parity that one gather writes.
  struct Job {
    const Keeper& keeper;
    FileLength file_length;
    std::uint64_t pages = 0;
    std::shared_ptr<component::ParityFiles> files;
    MemberOptions members;
    ParityPlan plan;
    std::uint64_t pap_begin = 0;  // no frame is needed before
  };

  // The component, made if it is not there.
  [[nodiscard]] Result<ComponentPtr> component_of(const Request& request, const Keeper& keeper);
  // Whether it was gathered before. An error: it is another one, or in another state.
  [[nodiscard]] Result<bool> check(const Request& request, const Component& component, const Keeper& keeper) const;
  [[nodiscard]] Status write(const Request& request, Component& component, Job& job);
  [[nodiscard]] Status write_rows(const Component& component, Job& job);
  // How many pages its source has of it, if there is one: they are copied.
  std::uint64_t copy_pages(const Request& request, const Job& job);
  // Away from the loop.
  [[nodiscard]] static Status find_copied(Job& job, const std::vector<bool>& is_absent);
  [[nodiscard]] Status make_durable(const ComponentPtr& component, const Job& job, bool is_new);
  [[nodiscard]] Status publish(const ComponentPtr& component, const Job& job);

  [[nodiscard]] Result<ComponentPtr> component_to_copy_to(const Request& request);
  [[nodiscard]] Status check_copy(const Request& request, Component& component) const;

  Keeping& keeping_;
  LfsContext& context_;
};

}  // namespace pif::lfs
