import { request, type Agent } from 'node:https';
import { TLSSocket } from 'node:tls';
import type { IncomingMessage } from 'node:http';

/** An answer of a server. */
export interface Answer {
  readonly status: number;
  readonly body: string;
  readonly headers: IncomingMessage['headers'];
  /** Whom the server's certificate names. */
  readonly servedBy: string;
}

/** How to ask. */
export interface Question {
  readonly port: number;
  readonly ca: string;
  readonly path?: string;
  readonly method?: string;
  readonly type?: string;
  readonly body?: string;
  /** @default a connection of its own */
  readonly agent?: Agent;
}

/** One request to the loopback. */
export function ask({ port, ca, path = '/convert', method = 'POST', type, body, agent }: Question): Promise<Answer> {
  const headers = { ...(type === undefined ? {} : { 'content-type': type }) };
  return new Promise((resolve, reject) => {
    const call = request({ port, host: '127.0.0.1', ca, path, method, headers, agent: agent ?? false }, (response) => {
      const { socket } = response;
      const servedBy = socket instanceof TLSSocket ? String(socket.getPeerCertificate().subject.CN) : '';
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, body: text, headers: response.headers, servedBy }),
      );
    });
    call.on('error', reject);
    call.end(body);
  });
}
