// Cover: parity of records that are being appended, once their rows are durable and before they are published. Covers
// of one component are written one after the other, and share syncs.
//
// Rows that fill whole pages inside the appended range become pages (`covered`), the rest frames. Rows of absent
// members are copied here before, as frames, and are taken from there. Folding: when frames of published rows make
// enough pages, these are made out of the members' rows, and the frames go.
#pragma once

#include "parity/copied_rows.h"
#include "parity/keeping.h"
#include "store/covered.h"

namespace pif::lfs {

class Covering {
 public:
  explicit Covering(Keeping& keeping);

  [[nodiscard]] Status cover(const Request& request, const proto::Cover& asked);
  // CopyRows of an append; checked. Returns when the frames are written; they are durable with the cover.
  [[nodiscard]] Status copy(const Request& request, const Keeper& keeper, const CopiedRows& rows);

 private:
  // The component that parity is added to, and by which view and generation.
  struct Target {
    ComponentPtr component;
    const Keeper& keeper;
    std::uint64_t view = 0;
    std::uint64_t generation = 0;
    FileLength base;
    Time deadline;  // of who asks
  };
  struct Records {  // of a cover
    Range range;
    FileLength file_length;
    std::uint64_t epoch = 0;
  };

  [[nodiscard]] Status check(const proto::Cover& asked, const Keeper& keeper);
  // The request's component, made if it is not there.
  [[nodiscard]] Result<ComponentPtr> component_of(const Request& request, const proto::ComponentShape& shape,
                                                  const Keeper& keeper, const FileLength& base);
  template <typename Asked>  // Cover or CopyRows
  [[nodiscard]] Result<Target> target_of(const Request& request, const Asked& asked, const Keeper& keeper);

  // ---- with its lock, in a mode of parity ----
  [[nodiscard]] Status know_frames(Component& component);
  // The range may be added to. The frames are known, and nothing that was cancelled is left where it goes.
  [[nodiscard]] Status prepare(const Target& to);
  [[nodiscard]] Status erase_cancelled(const Target& to);
  // The pages that were made; the rest of the records has frames.
  [[nodiscard]] Result<Range> write(const Target& to, const Records& records);
  [[nodiscard]] Status write(const Target& to, const Records& records, Range pages, bool by_message);
  void add_written(Component& component, const Status& status, std::span<const component::Frame> frames,
                   std::uint64_t end);
  [[nodiscard]] Status make_durable(const Target& to, Range pages);
  [[nodiscard]] Status enter(const Target& to, Range pages);
  [[nodiscard]] Status add_rows(const Target& to, const Records& records);
  [[nodiscard]] Status add_copies(const Target& to, const CopiedRows& rows);

  // Not where two members are absent: of a page that has rows of both neither can be rebuilt without the other one.
  bool may_make_pages(const Component& component, const Keeper& keeper) const;
  Range pages_of(const Target& to, const Records& records) const;
  [[nodiscard]] ParityPlan plan_of(const Target& to, const Records& records, Range pages) const;

  // ---- folding.cc ----
  // Begins it, if there is enough.
  void plan_fold(const ComponentPtr& component, const Keeper& keeper, const FileLength& file_length);
  // A fiber of its own.
  void fold_soon(const ComponentPtr& component, const Keeper& keeper);
  [[nodiscard]] Status fold(const ComponentPtr& component, const Keeper& keeper);
  // As far as its sequencer has published it.
  [[nodiscard]] Result<FileLength> published_length(const Component& component, const Keeper& keeper);
  // False: they cannot be made at present.
  [[nodiscard]] Result<bool> make_pages(const ComponentPtr& component, const Keeper& keeper,
                                        const FileLength& published);
  // The frames stay until the catalogue has the pages.
  [[nodiscard]] Status enter_pages(const ComponentPtr& component, const Keeper& keeper, std::uint64_t pages);
  void drop_frames(Component& component, const Keeper& keeper, std::uint64_t pages);

  Keeping& keeping_;
  LfsContext& context_;
};

}  // namespace pif::lfs
