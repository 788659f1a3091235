const { exec } = require('child_process');
app.post('/', (req, res) => { exec('convert ' + req.body.file, () => res.end());
});
