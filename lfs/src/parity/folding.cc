// Folding: frames become pages.
#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "parity/covering.h"
#include "parity/length_request.h"
#include "pif/base/assert.h"
#include "pif/parity/deputy.h"

namespace pif::lfs {
namespace {

constexpr std::uint64_t kFoldPages = 16;                         // that frames of published rows make; or
constexpr std::uint64_t kFoldBytes = 1u << 20;                   // of frames
constexpr Duration kFoldAfter = std::chrono::milliseconds(100);  // the range is published soon after its cover
constexpr Duration kFoldFor = std::chrono::seconds(2);           // tries; then the next cover begins anew

}  // namespace

void Covering::plan_fold(const ComponentPtr& component, const Keeper& keeper, const FileLength& file_length) {
  Component& c = *component;
  if (!c.frames || c.is_removed()) return;
  const std::uint64_t pages = keeper.pages(file_length);
  const bool is_long = c.frames->end - c.state.pap_begin() >= kFoldBytes;
  if (pages <= c.state.pages() || (!is_long && pages - c.state.pages() < kFoldPages)) return;
  const bool is_planned = c.fold_until.has_value();
  c.fold_until = context_.now() + kFoldFor;
  if (!is_planned) context_.fibers.start<&Covering::fold_soon>(*this, component, keeper);
}

void Covering::fold_soon(const ComponentPtr& component, const Keeper& keeper) {
  PIF_ASSERT(component->fold_until.has_value(), component->file.value);
  const daemon::AtExit end([&component] { component->fold_until.reset(); });
  for (;;) {
    context_.fibers.sleep_until(context_.now() + kFoldAfter);
    const Status folded = fold(component, keeper);
    if (folded || component->is_removed()) return;
    // It is published just now, or views differ for a moment.
    const bool is_later = folded.error().code == Code::kRetry || folded.error().code == Code::kOldView;
    if (!is_later) spdlog::warn("file {}: frames are not folded: {}", name_of(component->file), folded.error().text);
    if (!is_later || context_.now() >= *component->fold_until) return;
  }
}

// What is begun in one view ends in it, or enters no pages.
Status Covering::fold(const ComponentPtr& component, const Keeper& keeper) {
  PIF_TRY_VALUE(const auto lock,
                lock_component(context_.fibers, *component, Mode::kKeepParity, context_.now() + kFoldFor));
  PIF_TRY(know_frames(*component));
  if (!context_.check_takes(component->state.shape()) || !may_make_pages(*component, keeper)) return {};
  const std::uint64_t view = context_.view.index();
  const auto check = [&]() -> Status {
    if (view != context_.view.index()) return fail(Code::kOldView, "there is another view");
    return check_there(*component);
  };
  PIF_TRY_VALUE(const FileLength published, published_length(*component, keeper));
  PIF_TRY(check());
  const std::uint64_t pages = keeper.pages(published);
  if (pages <= component->state.pages()) return {};
  PIF_TRY(know_frames(*component));
  PIF_TRY(check());
  PIF_TRY_VALUE(const bool are_made, make_pages(component, keeper, published));
  PIF_TRY(check());
  return are_made ? enter_pages(component, keeper, pages) : Status();
}

Result<FileLength> Covering::published_length(const Component& c, const Keeper& keeper) {
  const proto::ComponentShape& shape = c.state.shape();
  const bool is_first_away = context_.view.is_absent(shape.layout().nodes(0));
  const LfsIndex sequencer = is_first_away ? parity::deputy_of(keeper.layout) : 0;
  if (shape.index() == sequencer) return file_length_of(c.state.published());
  PIF_TRY_VALUE(const auto grant, keeping_.peers.grant(shape, c.state.epoch()));
  FileLength length;
  PIF_TRY(keeping_.peers.run(*grant, [&](access::Requests& requests) {
    requests.add(length_request({sequencer, c.file.value, false, context_.view.index()}, keeper.format(),
                                [&length](const LengthAnswer& answer) -> Status {
                                  length = answer.length;
                                  return {};
                                }));
  }));
  return length;
}

Result<bool> Covering::make_pages(const ComponentPtr& component, const Keeper& keeper, const FileLength& published) {
  Component& c = *component;
  PIF_ASSERT(c.parity && c.frames && keeper.pages(published) > c.state.pages(), c.file.value, c.state.pages());
  MemberOptions members;
  members.file_length = published;
  members.records = {0, keeper.whole_records(published)};
  members.epoch = c.state.epoch();
  members.by_message = true;
  ParityPlan plan;
  plan.pages = missing_pages(c.state, {c.state.pages(), keeper.pages(published)});
  const auto frame_of = [&](RecordNumber record) {
    return counted_frame(*c.frames, c.state, keeper.format(), published, record);
  };
  const CopiesNeeded needed{absent_members(context_, keeper, c.state.shape()), plan.pages, {}, {}};
  auto copied = find_copies(keeper, needed, c.parity, frame_of);
  if (!copied) return false;  // a later one may find them
  members.copied = std::move(*copied);
  ParityRun run(keeping_.peers, context_.world.storage, keeping_.works, keeper, members, plan, c.parity);
  PIF_TRY(run.run(c.state.shape()));
  PIF_TRY(check_there(c));
  PIF_TRY(context_.components.open_parity(c, component::OpenMode::kCreate));
  const std::uint64_t bytes = c.frames ? c.frames->end - c.state.pap_begin() : 0;
  const Status synced = keeping_.seal_sync.sync_parity(component, c.parity, bytes, false);
  PIF_TRY(check_there(c));
  if (!synced) context_.components.set_failed(c, synced.error());
  PIF_TRY(synced);
  return c.frames.has_value();
}

Status Covering::enter_pages(const ComponentPtr& component, const Keeper& keeper, std::uint64_t pages) {
  Component& c = *component;
  PIF_ASSERT(c.lock.is_held(Mode::kKeepParity) && c.frames, c.file.value);
  const std::uint64_t begin = front_of_frames(keeper, *c.frames, pages);
  PIF_ASSERT(begin >= c.state.pap_begin(), begin, c.state.pap_begin());
  PIF_TRY(context_.batch.commit(component, [&](proto::ComponentState& state) {
    set_pages(pages, state);
    state.set_pap_begin(begin);
  }));
  if (c.is_removed()) return {};
  drop_frames(c, keeper, pages);
  if (c.parity) keeping_.works.run([files = c.parity, begin] { punch_front(*files, begin); });
  return {};
}

void Covering::drop_frames(Component& c, const Keeper& keeper, std::uint64_t pages) {
  const std::uint64_t page_rows = keeper.shape.page_rows();
  if (!c.frames) return;
  std::erase_if(c.frames->frames, [&](const auto& one) {
    return keeper.layout.parity_of(keeper.layout.locate(one.first)).row < pages * page_rows;
  });
}

}  // namespace pif::lfs
