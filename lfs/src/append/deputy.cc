#include "append/deputy.h"

#include <fmt/format.h>

#include "append/acting.h"
#include "append/append_coordinator.h"
#include "append/empty_component.h"
#include "parity/keeping.h"
#include "pif/base/assert.h"
#include "pif/parity/deputy.h"
#include "store/published_tickets.h"

namespace pif::lfs {

namespace {

// What was noted of an older generation, and is longer, nobody was shown.
bool is_newer(const proto::NotedLength& said, const proto::NotedLength& noted) {
  if (said.generation() > noted.generation()) return true;
  const FileLength a = file_length_of(said.file_length());
  const FileLength b = file_length_of(noted.file_length());
  return a != b && a.records >= b.records && a.bytes >= b.bytes;
}

}  // namespace

Deputy::Deputy(LfsContext& context) : context_(context) { context.operations.bind<&Deputy::note_length>(*this); }

// The first note makes it, if nothing of the file belongs here yet. Rows and parity were made durable before they are
// noted, and the component with them.
Result<ComponentPtr> Deputy::component_of(const Request& request, const Keeper& keeper) {
  const proto::NoteLength& asked = request.envelope().note_length();
  auto found = context_.published(request, FileId(asked.shape().file()));
  if (found && !is_same_shape((*found)->state.shape(), asked.shape()))
    return fail(Code::kInvalid, fmt::format("file {} has another format or layout", asked.shape().file()));
  if (found || found.error().code != Code::kNotFound) return found;
  const std::uint64_t records =
      std::max(asked.published().file_length().records(), asked.noted().file_length().records());
  PIF_TRY(context_.check_has_no_part(asked.shape(), keeper.layout, records));
  return make_empty(context_, asked.shape(), request.capability.epoch);
}

// What is noted may become the file's length, and a generation goes above all that were noted.
Status Deputy::check_length(const proto::NoteLength& asked) {
  PIF_TRY_VALUE(const auto shape, shape_of(asked.shape()));
  for (const auto generation : {asked.generation(), asked.noted().generation(), asked.published().generation()})
    PIF_TRY(check_generation(generation));
  PIF_TRY(check_tickets(asked.published_tickets()));
  PIF_TRY(check_file_length(shape.format, file_length_of(asked.published().file_length())));
  return check_file_length(shape.format, file_length_of(asked.noted().file_length()));
}

// Only LFS 0 notes, and only in the view that this LFS goes by: who still sequences in an older one may be absent.
Status Deputy::check_takes_notes(const proto::NoteLength& asked, const parity::Layout& layout) const {
  PIF_TRY(context_.check_view(asked.view()));
  PIF_TRY(context_.check_present(asked.shape()));
  PIF_TRY_VALUE(const LfsIndex acting, acting_sequencer(layout, asked.shape(), context_.view));
  if (acting == 0) return {};
  return fail(Code::kOldView, fmt::format("LFS 0 of file {} is absent in view {}, and {} sequences the file",
                                          asked.shape().file(), context_.view.index(), context_.config.name));
}

Result<net::Packet> Deputy::note_length(const Request& request, const proto::NoteLength& asked) {
  PIF_TRY_VALUE(const Keeper keeper, keeper_of(context_, asked.shape()));
  if (parity::deputy_of(keeper.layout) != keeper.index)
    return fail(Code::kInvalid, "the length is noted at the first LFS of the companion of LFS 0's bevy");
  PIF_TRY(check_length(asked));
  PIF_TRY(check_takes_notes(asked, keeper.layout));
  PIF_TRY_VALUE(const ComponentPtr component, component_of(request, keeper));
  PIF_ASSERT(component->state.shape().index() != 0, component->file.value);  // nobody is his own deputy
  // Its own generations are nobody else's, not even if LFS 0 begins with one of that number.
  if (asked.generation() < component->state.noted_generation() || asked.generation() <= component->state.grants())
    return fail(Code::kRetry, "another sequencer of the file has begun since");
  PIF_TRY(context_.batch.commit(component, [&asked](proto::ComponentState& state) {
    if (asked.generation() < state.noted_generation()) return;  // one that came in the same turn
    state.set_noted_generation(asked.generation());
    if (asked.has_noted() && is_newer(asked.noted(), state.noted())) *state.mutable_noted() = asked.noted();
    const Sequencer::Publication published = publication_of(asked.published());
    if (is_longer(published.file_length, file_length_of(state.published()))) set_published(state, published);
    add_tickets(*state.mutable_published_tickets(), asked.published_tickets());
  }));
  net::Packet reply = Replies::reply(request);
  auto* out = reply.envelope.mutable_note_length_reply();
  *out->mutable_noted() = component->state.noted();
  *out->mutable_published_tickets() = component->state.published_tickets();
  return reply;
}

}  // namespace pif::lfs
