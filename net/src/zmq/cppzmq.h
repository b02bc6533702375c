// cppzmq with names of ours, of which the functions are in zmq_library.cc: so a program may link this library, cppzmq
// and one of ZeroMQ, whichever that is.
#pragma once

#define zmq pif_zmq
#define zmq_errno pif_zmq_errno
#define zmq_strerror pif_zmq_strerror
#define zmq_ctx_new pif_zmq_ctx_new
#define zmq_ctx_term pif_zmq_ctx_term
#define zmq_ctx_set pif_zmq_ctx_set
#define zmq_socket pif_zmq_socket
#define zmq_close pif_zmq_close
#define zmq_bind pif_zmq_bind
#define zmq_connect pif_zmq_connect
#define zmq_getsockopt pif_zmq_getsockopt
#define zmq_setsockopt pif_zmq_setsockopt
#define zmq_msg_init pif_zmq_msg_init
#define zmq_msg_init_size pif_zmq_msg_init_size
#define zmq_msg_init_data pif_zmq_msg_init_data
#define zmq_msg_close pif_zmq_msg_close
#define zmq_msg_send pif_zmq_msg_send
#define zmq_msg_recv pif_zmq_msg_recv
#define zmq_msg_move pif_zmq_msg_move
#define zmq_msg_copy pif_zmq_msg_copy
#define zmq_msg_data pif_zmq_msg_data
#define zmq_msg_size pif_zmq_msg_size
#define zmq_msg_more pif_zmq_msg_more
#define zmq_msg_gets pif_zmq_msg_gets
#define zmq_z85_encode pif_zmq_z85_encode
#define zmq_z85_decode pif_zmq_z85_decode
#define zmq_curve_keypair pif_zmq_curve_keypair

#include <zmq.hpp>
