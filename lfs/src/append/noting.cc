#include "append/noting.h"

#include "parity/keeping.h"
#include "parity/length_request.h"
#include "pif/base/assert.h"
#include "pif/parity/deputy.h"
#include "store/published_tickets.h"

namespace pif::lfs {
namespace {

constexpr Duration kPatience = std::chrono::seconds(5);

proto::NotedLength noted_of(const Sequencer::Publication& publication) {
  proto::NotedLength noted;
  *noted.mutable_file_length() = wire::proto_of(publication.file_length);
  noted.set_ticket(publication.ticket);
  noted.set_generation(publication.generation);
  return noted;
}

Result<Noting::Noted> answer_of(const proto::NoteLength& note, const proto::NoteLengthReply& reply) {
  const Noting::Noted answer{reply.noted(), reply.published_tickets()};
  PIF_TRY_VALUE(const Format format, format_of(note.shape().format()));
  PIF_TRY(check_tickets(answer.published_tickets));
  PIF_TRY(check_generation(answer.length.generation()));
  PIF_TRY(check_file_length(format, file_length_of(answer.length.file_length())));
  return answer;
}

}  // namespace

Result<Noting::Noted> Noting::send(const ComponentPtr& component, std::uint64_t generation,
                                   const std::optional<Sequencer::Publication>& noted) {
  const auto& state = component->state;
  PIF_ASSERT(keeps_parity(state.shape()) && state.shape().index() == 0, component->file.value);
  proto::NoteLength note;
  *note.mutable_shape() = state.shape();
  note.mutable_shape()->set_index(parity::deputy_of(component->layout));
  note.set_generation(generation);
  note.set_view(context_.view.index());
  if (noted) *note.mutable_noted() = noted_of(*noted);
  *note.mutable_published() =
      noted_of({file_length_of(state.published()), state.published_ticket(), state.published_generation()});
  *note.mutable_published_tickets() = state.published_tickets();
  PIF_TRY_VALUE(const auto grant, peers_.grant(state.shape(), state.epoch()));
  Noted answer;
  access::BulkRequest request;
  request.lfs = note.shape().index();
  request.timeout = kPatience;
  request.make = [&note] {
    net::Packet packet;
    *packet.envelope.mutable_note_length() = note;
    return packet;
  };
  request.take = [&note, &answer](net::Packet& reply) -> Status {
    PIF_TRY_VALUE(answer, answer_of(note, reply.envelope.note_length_reply()));
    return {};
  };
  PIF_TRY(peers_.run(*grant, [&request](access::Requests& requests) { requests.add(std::move(request)); }));
  return answer;
}

Result<std::uint64_t> Noting::ask(const ComponentPtr& component) {
  const auto& state = component->state;
  PIF_ASSERT(keeps_parity(state.shape()) && state.shape().index() == 0, component->file.value);
  PIF_TRY_VALUE(const auto grant, peers_.grant(state.shape(), state.epoch()));
  std::uint64_t found = 0;
  const LengthAsked noted{parity::deputy_of(component->layout), component->file.value, true, context_.view.index()};
  auto request = length_request(noted, component->shape.format, [&found](const LengthAnswer& answer) -> Status {
    found = answer.generation;
    return {};
  });
  request.timeout = kPatience;
  PIF_TRY(peers_.run(*grant, [&request](access::Requests& requests) { requests.add(std::move(request)); }));
  return found;
}

}  // namespace pif::lfs
