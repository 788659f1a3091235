import { execSync } from 'child_process';

export class DiagnosticsController {
  constructor(app) {
    app.get('/diagnostics/ping/:host', this.ping.bind(this));
  }

  ping(req, res) {
    const host = req.params.host;
    const output = this.runPing(host, req.query.count || 1);
    res.type('text/plain').send(output);
  }

  runPing(host, count) {
    const command = ['ping', '-c', count, host].join(' ');
    return execSync(command, { timeout: 5000 }).toString();
  }
}
