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
constexpr unsigned kFoldTriesMax = 20;                           // then the next cover begins anew
constexpr Duration kFoldAfter = std::chrono::milliseconds(100);  // the range is published soon after its cover

}  // namespace

void Covering::plan_fold(Line& line, const FileLength& file_length) {
  const Component& c = *line.component;
  line.fold_tries = 0;
  if (line.fold_at != kNever || !c.frames || c.is_removed()) return;
  const std::uint64_t pages = line.keeper.pages(file_length);
  const bool is_long = c.frames->end - c.state.pap_begin() >= kFoldBytes;
  if (pages <= c.state.pages() || (!is_long && pages - c.state.pages() < kFoldPages)) return;
  line.fold_at = context_.now() + kFoldAfter;
}

// What is begun in one view ends in it, or enters no pages.
void Covering::fold(Line& line) {
  PIF_ASSERT(!line.is_busy && line.syncing == 0 && line.component->frames, line.component->file.value);
  line.is_busy = true;
  line.fold_at = kNever;
  line.view = context_.view.index();
  const auto& state = line.component->state;
  if (!context_.check_takes(state.shape()) || !may_make_pages(line)) return end_fold(line);
  const bool is_first_away = context_.view.is_absent(state.shape().layout().nodes(0));
  const LfsIndex sequencer = is_first_away ? parity::deputy_of(line.keeper.layout) : 0;
  if (state.shape().index() == sequencer) return fold_up_to(line, file_length_of(state.published()));
  ask_length(line, sequencer);
}

// Of the sequencer: only what it has published is folded.
void Covering::ask_length(Line& line, LfsIndex sequencer) {
  auto granted = keeping_.peers.grant(line.component->state.shape(), line.epoch);
  if (!granted) return end_fold(line);
  const std::shared_ptr<access::Grant> grant = std::move(*granted);
  auto found = std::make_shared<FileLength>();
  keeping_.peers.run(
      *grant,
      [found, &line, sequencer](access::Requests& requests) {
        requests.add(length_request({sequencer, line.component->file.value, false, line.view}, line.keeper.format(),
                                    [found](const LengthTold& told) -> Status {
                                      *found = told.length;
                                      return {};
                                    }));
      },
      [this, &line, found, grant](const Status& status) {
        if (status) return fold_up_to(line, *found);
        const bool is_later = status.error().code == Code::kRetry || status.error().code == Code::kOldView;
        if (is_later) {  // it publishes just now, or views differ for a moment
          if (++line.fold_tries < kFoldTriesMax) line.fold_at = context_.now() + kFoldAfter;
        } else {
          spdlog::warn("file {}: its length cannot be had: {}", name_of(line.component->file), status.error().text);
        }
        end_fold(line);
      });
}

void Covering::fold_up_to(Line& line, const FileLength& published) {
  const Component& c = *line.component;
  const std::uint64_t pages = line.keeper.pages(published);
  const bool is_void = c.is_removed() || c.failure || !c.parity || !c.frames || line.view != context_.view.index();
  if (is_void || pages <= c.state.pages()) return end_fold(line);
  MemberOptions members;
  members.file_length = published;
  members.records = {0, line.keeper.whole_records(published)};
  members.epoch = line.epoch;
  members.by_message = true;
  ParityPlan plan;
  plan.pages = missing_pages(c.state, {c.state.pages(), pages});
  const auto frame_of = [&](RecordNumber record) {
    return counted_frame(*c.frames, c.state, line.keeper.format(), published, record);
  };
  const CopiesNeeded needed{absent_members(context_, line.keeper, c.state.shape()), plan.pages, {}, {}};
  auto copied = find_copies(line.keeper, needed, c.parity, frame_of);
  if (!copied) return end_fold(line);  // a later one may find them
  members.copied = std::move(*copied);
  const auto run = std::make_shared<ParityRun>(keeping_.peers, context_.world.storage, keeping_.works, line.keeper,
                                               members, plan, c.parity);
  start_run(context_.fibers, run, c.state.shape(),
            [this, &line, pages](const Status& status, const ParityRun::Outcome&) {
              Component& component = *line.component;
              if (!status || component.is_removed() || component.failure) return folded(line, pages, status);
              const auto opened = context_.components.open_parity(component, component::OpenMode::kCreate);
              if (!opened) return folded(line, pages, opened);
              const auto bytes = component.frames ? component.frames->end - component.state.pap_begin() : 0;
              keeping_.seal_sync.add_parity(line.component, component.parity, bytes, false,
                                            [this, &line, pages](const Status& done) {
                                              if (!done) context_.components.set_failed(*line.component, done.error());
                                              folded(line, pages, done);
                                            });
            });
}

// The frames stay until the catalogue has the pages.
void Covering::folded(Line& line, std::uint64_t pages, const Status& status) {
  Component& c = *line.component;
  if (!status) spdlog::warn("file {}: frames are not folded: {}", name_of(c.file), status.error().text);
  if (!status || c.is_removed() || c.failure || !c.frames) return end_fold(line);
  if (line.view != context_.view.index()) return end_fold(line);
  const std::uint64_t begin = front_of_frames(line.keeper, *c.frames, pages);
  PIF_ASSERT(begin >= c.state.pap_begin(), begin, c.state.pap_begin());
  context_.batch.update(
      line.component,
      [pages, begin](proto::ComponentState& state) {
        set_pages(pages, state);
        state.set_pap_begin(begin);
      },
      [this, &line, pages](const Status& done) {
        if (!done || line.component->is_removed()) return end_fold(line);
        drop_frames(line, pages);
      });
}

void Covering::drop_frames(Line& line, std::uint64_t pages) {
  Component& c = *line.component;
  const std::uint64_t page_rows = line.keeper.shape.page_rows();
  if (c.frames) {
    std::erase_if(c.frames->frames, [&](const auto& one) {
      return line.keeper.layout.parity_of(line.keeper.layout.locate(one.first)).row < pages * page_rows;
    });
  }
  if (!c.parity) return end_fold(line);
  keeping_.works.submit([files = c.parity, begin = c.state.pap_begin()] { punch_front(*files, begin); },
                        [this, &line] { end_fold(line); });
}

void Covering::end_fold(Line& line) {
  PIF_ASSERT(line.is_busy, line.component->file.value);
  line.is_busy = false;
}

}  // namespace pif::lfs
