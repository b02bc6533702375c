#include "append/deputy.h"

#include <fmt/format.h>

#include "append/empty_component.h"
#include "pif/base/assert.h"
#include "pif/parity/deputy.h"

namespace pif::lfs {

Deputy::Deputy(LfsContext& context) : context_(context) { context.operations.bind<&Deputy::note_length>(*this); }

Result<ComponentPtr> Deputy::component_of(const Request& request, const proto::ComponentShape& shape) {
  auto found = context_.published(request, FileId(shape.file()));
  if (found && !is_same_shape((*found)->state.shape(), shape))
    return fail(Code::kInvalid, fmt::format("file {} has another format or layout", shape.file()));
  if (found || found.error().code != Code::kNotFound) return found;
  return make_empty(context_, shape, request.capability.epoch);
}

void Deputy::note_length(const Request& request, const proto::NoteLength& asked) {
  const auto refuse = [&](Error why) { context_.replies.answer(request, fail(std::move(why))); };
  if (auto ok = context_.check_shape(asked.shape(), FileId(asked.shape().file())); !ok) return refuse(ok.error());
  const auto layout = layout_of(asked.shape().layout());
  if (!layout) return refuse(layout.error());
  if (!keeps_parity(asked.shape()) || parity::deputy_of(*layout) != asked.shape().index())
    return refuse({Code::kInvalid, "the length is noted at the first LFS of the companion of LFS 0's bevy", {}});
  auto found = component_of(request, asked.shape());
  if (!found) return refuse(std::move(found.error()));
  const ComponentPtr component = std::move(*found);
  PIF_ASSERT(component->state.shape().index() != 0, component->file.value);  // nobody is his own deputy
  if (asked.generation() < component->state.noted_generation())
    return refuse({Code::kRetry, "another sequencer of the file has begun since", {}});
  const auto change = [asked](proto::ComponentState& state) {
    if (asked.generation() < state.noted_generation()) return;  // one that came in the same turn
    state.set_noted_generation(asked.generation());
    const FileLength& noted = file_length_of(state.noted().file_length());
    const FileLength said = file_length_of(asked.noted().file_length());
    if (asked.has_noted() && said.records >= noted.records && said.bytes >= noted.bytes)
      *state.mutable_noted() = asked.noted();
  };
  context_.batch.update(component, change,
                        [this, component, token = context_.replies.defer(request)](const Status& committed) {
                          if (!committed) return context_.replies.answer(token, committed);
                          net::Packet reply;
                          *reply.envelope.mutable_note_length_reply()->mutable_noted() = component->state.noted();
                          context_.replies.answer(token, Result<net::Packet>(std::move(reply)));
                        });
}

}  // namespace pif::lfs
