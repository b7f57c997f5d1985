#ifndef PLEXUS_OPENSSL_SHIM_H
#define PLEXUS_OPENSSL_SHIM_H

#include <errno.h>
#include <stdint.h>
#include <sys/socket.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

// The parts of OpenSSL that are macros, which Swift cannot import.

static inline int plexus_tls_require_1_2(SSL_CTX *context) {
  return (int)SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
}

static inline int plexus_tls_set_server_name(SSL *session, const char *name) {
  return (int)SSL_set_tlsext_host_name(session, name);
}

// A write that was interrupted is repeated with bytes that can have moved.
static inline void plexus_tls_allow_partial_writes(SSL *session) {
  SSL_set_mode(session, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
}

// A BIO over a socket that belongs to its user. OpenSSL's own sends SIGPIPE to the process when the peer has gone.

#ifdef MSG_NOSIGNAL
#define PLEXUS_TLS_FLAGS MSG_NOSIGNAL
#else
#define PLEXUS_TLS_FLAGS 0
#endif

static inline int plexus_tls_descriptor(BIO *bio) { return (int)(intptr_t)BIO_get_data(bio); }

static inline int plexus_tls_isTemporary(void) {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

static int plexus_tls_write(BIO *bio, const char *bytes, int count) {
  ssize_t sent = send(plexus_tls_descriptor(bio), bytes, (size_t)count, PLEXUS_TLS_FLAGS);
  BIO_clear_retry_flags(bio);
  if (sent < 0 && plexus_tls_isTemporary()) BIO_set_retry_write(bio);
  return (int)sent;
}

static int plexus_tls_read(BIO *bio, char *bytes, int count) {
  ssize_t received = recv(plexus_tls_descriptor(bio), bytes, (size_t)count, 0);
  BIO_clear_retry_flags(bio);
  if (received < 0 && plexus_tls_isTemporary()) BIO_set_retry_read(bio);
  return (int)received;
}

static long plexus_tls_control(BIO *bio, int command, long number, void *pointer) {
  (void)bio, (void)number, (void)pointer;
  return command == BIO_CTRL_FLUSH;
}

static inline BIO_METHOD *plexus_tls_make_method(void) {
  BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "plexus");
  if (method == NULL) return NULL;
  BIO_meth_set_write(method, plexus_tls_write);
  BIO_meth_set_read(method, plexus_tls_read);
  BIO_meth_set_ctrl(method, plexus_tls_control);
  return method;
}

static inline BIO *plexus_tls_make_bio(const BIO_METHOD *method, int descriptor) {
  BIO *bio = BIO_new(method);
  if (bio == NULL) return NULL;
  BIO_set_data(bio, (void *)(intptr_t)descriptor);
  BIO_set_init(bio, 1);
  return bio;
}

#endif
